//! `[permissions.NAME]` of config.toml.

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use crate::permissions::{Place, Problem, Profiles, Spec};

/// Reads one profile. What is wrong reads on after its name; before it the byte where that stands, if that is known.
pub fn read(profiles: &mut Profiles, name: &str, table: &DeTable<'_>) -> Result<(), (Option<usize>, String)> {
    let map: Map<String, Value> =
        table.iter().map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref()))).collect();
    let wrong = |problem: Problem| {
        let at = problem.place.as_ref().and_then(|place| place_of(table, place));
        // A place reads on: "`permissions.careful`, `allow[2]` is ...".
        let comma = if problem.place.is_some() { ", " } else { " " };
        (at, format!("{comma}{problem}"))
    };
    Spec::read(&map).and_then(|spec| profiles.add(name, spec)).map_err(wrong)
}

/// Where a key, or an entry of its list, begins.
fn place_of(table: &DeTable<'_>, place: &Place) -> Option<usize> {
    let (key, value) = table.iter().find(|(key, _)| *key.get_ref() == place.key)?;
    let entry = match (value.get_ref(), place.index) {
        (DeValue::Array(list), Some(index)) => list.get(index),
        _ => None,
    };
    Some(entry.map_or(key.span().start, |entry| entry.span().start))
}

/// As JSON, in which profiles are read; what JSON has no word for is null, which fits nowhere.
fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => text.to_string().into(),
        DeValue::Boolean(value) => (*value).into(),
        DeValue::Array(list) => list.iter().map(|entry| json(entry.get_ref())).collect(),
        DeValue::Table(table) => {
            table.iter().map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref()))).collect()
        }
        _ => Value::Null,
    }
}
