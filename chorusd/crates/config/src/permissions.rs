//! Reads `[permissions.NAME]` of config.toml.

use chorus_permissions::{ProfileError, ProfileLocation, ProfileSpec, Profiles};
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

/// Reads one profile. The error message follows the profile's name; with it comes the byte offset of the fault, if that
/// is known.
pub(crate) fn read_profile(
    profiles: &mut Profiles,
    name: &str,
    table: &DeTable<'_>,
) -> Result<(), (Option<usize>, String)> {
    let map: Map<String, Value> =
        table.iter().map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref()))).collect();
    let wrong = |problem: ProfileError| {
        let at = problem.location.as_ref().and_then(|place| offset_of(table, place));
        // A message with a place continues after a comma: "`permissions.careful`, `allow[2]` is ...".
        let comma = if problem.location.is_some() { ", " } else { " " };
        (at, format!("{comma}{problem}"))
    };
    ProfileSpec::from_json(&map).and_then(|spec| profiles.add(name, spec)).map_err(wrong)
}

/// Byte offset of a key, or of an entry of its list.
fn offset_of(table: &DeTable<'_>, place: &ProfileLocation) -> Option<usize> {
    let (key, value) = table.iter().find(|(key, _)| *key.get_ref() == place.key)?;
    let entry = match (value.get_ref(), place.index) {
        (DeValue::Array(list), Some(index)) => list.get(index),
        _ => None,
    };
    Some(entry.map_or(key.span().start, |entry| entry.span().start))
}

/// Converts to JSON, from which profiles are read. Types that JSON does not have become null, which no key accepts.
fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => text.to_string().into(),
        DeValue::Boolean(value) => (*value).into(),
        DeValue::Array(list) => list.iter().map(|entry| to_json(entry.get_ref())).collect(),
        DeValue::Table(table) => {
            table.iter().map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref()))).collect()
        }
        _ => Value::Null,
    }
}
