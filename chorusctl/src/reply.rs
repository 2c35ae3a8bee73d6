//! Results as they came: long ones arrive in pages and leave as one JSON value, or as one line an entry,
//! without being read and written anew.

use std::fmt;

use chorus_proto::Method;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::app::{App, read};
use crate::error::Failure;
use crate::ui::Out;
use crate::ui::out::Format;

/// A JSON object in the order it was written, its values unread.
#[derive(Debug, Default)]
pub struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// The value of `name` as a type.
    ///
    /// # Errors
    /// [`Failure`] where it is missing or does not fit.
    pub fn get<'a, T: Deserialize<'a>>(&'a self, name: &str) -> Result<T, Failure> {
        let raw = self.0.iter().find(|(key, _)| key == name).map_or("null", |(_, value)| value.get());
        serde_json::from_str(raw).map_err(|error| chorus_proto::CallError::Malformed(error).into())
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Writes the entries of `list`, one a line.
///
/// # Errors
/// [`Failure`]: not such a result, or an output that does not take it.
pub fn lines(out: &mut Out, result: &RawValue, list: &str) -> Result<(), Failure> {
    let fields: Fields = read(result)?;
    entries(out, &fields, list)
}

fn entries(out: &mut Out, fields: &Fields, list: &str) -> Result<(), Failure> {
    for entry in fields.get::<Vec<&RawValue>>(list)? {
        // What came in over several lines leaves in one; inside strings JSON has no bare line ends.
        if entry.get().contains(['\n', '\r']) {
            out.json(&entry.get().replace(['\n', '\r'], " "))?;
        } else {
            out.json(entry.get())?;
        }
        out.text("\n")?;
    }
    Ok(())
}

/// Asks for a result that comes in pages (`next` names the offset of the following one) and writes it as one JSON
/// value, or one line an entry of `list`.
///
/// # Errors
/// [`Failure`]: the daemon's, or an output that does not take it.
pub fn whole<M: Method, P: Serialize>(
    app: &mut App,
    list: &str,
    first: &P,
    following: impl Fn(u64) -> P,
) -> Result<(), Failure> {
    let raw = app.call_raw::<M>(first)?;
    let page: Fields = read(&raw)?;
    let next: Option<u64> = page.get("next")?;
    if app.out.format() == Format::Jsonl {
        entries(&mut app.out, &page, list)?;
        return rest::<M, P>(app, next, following, |out, page| entries(out, page, list));
    }
    if next.is_none() {
        return app.out.json_line(&raw);
    }
    let mut opening = "{";
    for (name, value) in &page.0 {
        let name = serde_json::to_string(name).unwrap_or_default();
        write!(app.out, "{opening}{name}:")?;
        opening = ",";
        if name.trim_matches('"') == list {
            app.out.text("[")?;
            app.out.json(inside(value))?;
            rest::<M, P>(app, next, &following, |out, page| {
                let entries: &RawValue = page.get(list)?;
                if inside(entries).is_empty() {
                    return Ok(());
                }
                out.text(",")?;
                out.json(inside(entries))
            })?;
            app.out.text("]")?;
        } else if name == "\"next\"" {
            app.out.text("null")?;
        } else {
            app.out.json(value.get())?;
        }
    }
    app.out.text("}\n")
}

/// Fetches the pages after the first.
fn rest<M: Method, P: Serialize>(
    app: &mut App,
    mut next: Option<u64>,
    following: impl Fn(u64) -> P,
    mut write: impl FnMut(&mut Out, &Fields) -> Result<(), Failure>,
) -> Result<(), Failure> {
    while let Some(offset) = next {
        let page: Fields = read(&app.call_raw::<M>(&following(offset))?)?;
        write(&mut app.out, &page)?;
        // A page that leads nowhere ends it.
        next = page.get::<Option<u64>>("next")?.filter(|next| *next > offset);
    }
    Ok(())
}

/// What is between the brackets of a JSON list.
fn inside(list: &RawValue) -> &str {
    let text = list.get().trim();
    text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).map_or("", str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap_or_default()
    }

    #[test]
    fn fields_keep_their_order_and_digits() -> Result<(), Failure> {
        let fields: Fields = read(&raw(r#"{"z":1.10,"a":[ 1e5, 2 ],"next":null}"#))?;
        let shown: Vec<_> = fields.0.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
        assert_eq!(shown, [("z", "1.10"), ("a", "[ 1e5, 2 ]"), ("next", "null")]);
        assert_eq!(fields.get::<Option<u64>>("next")?, None);
        assert_eq!(fields.get::<Option<u64>>("missing")?, None);
        Ok(())
    }

    #[test]
    fn every_entry_is_one_line() -> Result<(), Failure> {
        let mut out = Out::captured(None);
        lines(&mut out, &raw("{\"agents\":[{\"a\":\n1},{\"b\":\"\\n\"}]}"), "agents")?;
        assert_eq!(out.written(), "{\"a\": 1}\n{\"b\":\"\\n\"}\n");
        Ok(())
    }

    #[test]
    fn lists_are_opened_without_reading_them() {
        assert_eq!(inside(&raw("[ 1, [2] ]")), "1, [2]");
        assert_eq!(inside(&raw("[]")), "");
    }
}
