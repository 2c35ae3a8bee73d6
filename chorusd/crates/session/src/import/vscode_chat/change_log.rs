//! The log of changes to a session: each line sets, extends or deletes a value, and the first has all of it.

use serde_json::Value;

use crate::import::raw_object::RawObject;

/// A list is never extended beyond its end by more than this, whatever a line says.
const MAX_GAP: usize = 1_000;

/// Returns whether an object is a line of a log.
pub(in super::super) fn is_change(fields: &RawObject<'_>) -> bool {
    fields.get_u64("kind").is_some_and(|kind| kind <= 3) && (fields.contains_key("v") || fields.has("k"))
}

/// The session after the lines that were read.
#[derive(Debug, Default)]
pub(super) struct ChangeLog {
    session: Option<Value>,
}

impl ChangeLog {
    /// Applies a line. Returns the reason if that is impossible.
    pub(super) fn apply(&mut self, fields: &RawObject<'_>) -> Result<(), String> {
        let kind = fields.get_u64("kind").unwrap_or_default();
        let value: Option<Value> = fields.get_parsed("v");
        let path: Vec<Value> = fields.get_parsed("k").unwrap_or_default();
        let Some((last, parents)) = path.split_last() else {
            if kind != 0 {
                return Err("a change without the path of a value".into());
            }
            self.session = value;
            return Ok(());
        };
        // A log that begins with a change has lost its first line.
        let mut at = self.session.get_or_insert_with(|| Value::Object(serde_json::Map::new()));
        for key in parents {
            at = child(at, key)?;
        }
        match kind {
            2 => {
                let list = child(at, last)?;
                if !list.is_array() {
                    *list = Value::Array(Vec::new());
                }
                let Some(list) = list.as_array_mut() else { return Ok(()) };
                if let Some(length) = fields.get_parsed("i") {
                    list.truncate(length);
                }
                match value {
                    Some(Value::Array(items)) => list.extend(items),
                    Some(_) => return Err("the items are not a list".into()),
                    None => {}
                }
            }
            3 => match (at, last) {
                (Value::Object(fields), Value::String(key)) => drop(fields.remove(key)),
                (Value::Array(list), key) => {
                    if let Some(item) = key.as_u64().and_then(|at| list.get_mut(usize::try_from(at).ok()?)) {
                        *item = Value::Null;
                    }
                }
                _ => {}
            },
            _ => *child(at, last)? = value.unwrap_or_default(),
        }
        Ok(())
    }

    /// Returns the session; `None` if there was no line.
    pub(super) fn into_json(self) -> Option<String> {
        self.session.map(|session| session.to_string())
    }
}

/// Returns the value with this key or index, which is created if it does not exist.
fn child<'v>(parent: &'v mut Value, key: &Value) -> Result<&'v mut Value, String> {
    match key {
        Value::String(key) => {
            if !parent.is_object() {
                *parent = Value::Object(serde_json::Map::new());
            }
            Ok(&mut parent[key.as_str()])
        }
        Value::Number(index) => {
            let index = index.as_u64().and_then(|index| usize::try_from(index).ok()).ok_or("an invalid index")?;
            if !parent.is_array() {
                *parent = Value::Array(Vec::new());
            }
            let list = parent.as_array_mut().ok_or("not a list")?;
            if index > list.len().saturating_add(MAX_GAP) {
                return Err("an index beyond the end of its list".into());
            }
            if index >= list.len() {
                list.resize(index + 1, Value::Null);
            }
            Ok(&mut list[index])
        }
        _ => Err("a path of other values than keys and indexes".into()),
    }
}
