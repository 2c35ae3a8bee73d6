//! Prints results that arrive in pages, as one JSON value or one line per entry, without parsing and re-serializing
//! them.

use std::fmt;

use chorus_proto::Method;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::app::{App, parse_result};
use crate::error::Error;
use crate::ui::Stdout;
use crate::ui::stdout::OutputFormat;

/// A JSON object with its fields in their original order and unparsed values.
#[derive(Debug, Default)]
pub struct RawObject(Vec<(String, Box<RawValue>)>);

impl RawObject {
    /// Parses the value of `name`; a missing field counts as null.
    pub fn get<'a, T: Deserialize<'a>>(&'a self, name: &str) -> Result<T, Error> {
        let raw = self.0.iter().find(|(key, _)| key == name).map_or("null", |(_, value)| value.get());
        serde_json::from_str(raw).map_err(|error| chorus_proto::CallError::Malformed(error).into())
    }

    /// Removes the field `name`.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = RawObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(RawObject(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Prints the entries of `list`, one per line.
pub fn print_entries(out: &mut Stdout, result: &RawValue, list: &str) -> Result<(), Error> {
    let fields: RawObject = parse_result(result)?;
    write_entries(out, &fields, list)
}

/// Like [`print_entries`], for a list that may be missing.
pub fn print_entries_if_any(out: &mut Stdout, result: &RawValue, list: &str) -> Result<(), Error> {
    let fields: RawObject = parse_result(result)?;
    if fields.get::<Option<&RawValue>>(list)?.is_some() { write_entries(out, &fields, list) } else { Ok(()) }
}

fn write_entries(out: &mut Stdout, fields: &RawObject, list: &str) -> Result<(), Error> {
    for entry in fields.get::<Vec<&RawValue>>(list)? {
        // Put an entry on one line. JSON strings contain no raw line breaks, so replacing them is safe.
        if entry.get().contains(['\n', '\r']) {
            out.json(&entry.get().replace(['\n', '\r'], " "))?;
        } else {
            out.json(entry.get())?;
        }
        out.text("\n")?;
    }
    Ok(())
}

/// Fetches one page and prints it as one JSON value, or one line per entry of `list`.
pub fn print_page<M: Method, P: Serialize>(app: &mut App, list: &str, params: &P) -> Result<(), Error> {
    let raw = app.call_raw::<M>(params)?;
    match app.stdout.format() {
        OutputFormat::Jsonl => print_entries(&mut app.stdout, &raw, list),
        OutputFormat::Json | OutputFormat::Text => app.stdout.json_line(&raw),
    }
}

/// Fetches a paged result (`next` is the offset of the following page) and prints it as one JSON value, or one line per
/// entry of `list`.
pub fn print_all_pages<M: Method, P: Serialize>(
    app: &mut App,
    list: &str,
    first: &P,
    following: impl Fn(u64) -> P,
) -> Result<(), Error> {
    let raw = app.call_raw::<M>(first)?;
    let page: RawObject = parse_result(&raw)?;
    let next: Option<u64> = page.get("next")?;
    if app.stdout.format() == OutputFormat::Jsonl {
        write_entries(&mut app.stdout, &page, list)?;
        return fetch_rest::<M, P>(app, next, following, |out, page| write_entries(out, page, list));
    }
    if next.is_none() {
        return app.stdout.json_line(&raw);
    }
    let mut opening = "{";
    for (name, value) in &page.0 {
        let name = serde_json::to_string(name).unwrap_or_default();
        write!(app.stdout, "{opening}{name}:")?;
        opening = ",";
        if name.trim_matches('"') == list {
            app.stdout.text("[")?;
            app.stdout.json(list_content(value))?;
            fetch_rest::<M, P>(app, next, &following, |out, page| {
                let entries: &RawValue = page.get(list)?;
                if list_content(entries).is_empty() {
                    return Ok(());
                }
                out.text(",")?;
                out.json(list_content(entries))
            })?;
            app.stdout.text("]")?;
        } else if name == "\"next\"" {
            app.stdout.text("null")?;
        } else {
            app.stdout.json(value.get())?;
        }
    }
    app.stdout.text("}\n")
}

/// Fetches the pages after the first.
fn fetch_rest<M: Method, P: Serialize>(
    app: &mut App,
    mut next: Option<u64>,
    following: impl Fn(u64) -> P,
    mut write: impl FnMut(&mut Stdout, &RawObject) -> Result<(), Error>,
) -> Result<(), Error> {
    while let Some(offset) = next {
        let page: RawObject = parse_result(&app.call_raw::<M>(&following(offset))?)?;
        write(&mut app.stdout, &page)?;
        // Stop at a page whose next offset does not advance.
        next = page.get::<Option<u64>>("next")?.filter(|next| *next > offset);
    }
    Ok(())
}

/// Returns the text between the brackets of a JSON list.
fn list_content(list: &RawValue) -> &str {
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
    fn fields_keep_their_order_and_digits() -> Result<(), Error> {
        let fields: RawObject = parse_result(&raw(r#"{"z":1.10,"a":[ 1e5, 2 ],"next":null}"#))?;
        let shown: Vec<_> = fields.0.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
        assert_eq!(shown, [("z", "1.10"), ("a", "[ 1e5, 2 ]"), ("next", "null")]);
        assert_eq!(fields.get::<Option<u64>>("next")?, None);
        assert_eq!(fields.get::<Option<u64>>("missing")?, None);
        Ok(())
    }

    #[test]
    fn every_entry_is_one_line() -> Result<(), Error> {
        let mut out = Stdout::captured(None);
        print_entries(&mut out, &raw("{\"agents\":[{\"a\":\n1},{\"b\":\"\\n\"}]}"), "agents")?;
        assert_eq!(out.captured_text(), "{\"a\": 1}\n{\"b\":\"\\n\"}\n");
        Ok(())
    }

    #[test]
    fn lists_are_opened_without_reading_them() {
        assert_eq!(list_content(&raw("[ 1, [2] ]")), "1, [2]");
        assert_eq!(list_content(&raw("[]")), "");
    }
}
