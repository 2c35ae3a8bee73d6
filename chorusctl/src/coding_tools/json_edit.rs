//! Changes members of an object in a JSON text and leaves every other byte as it is. The text may have comments and trailing
//! commas. Every function checks its result and returns `None` if the change cannot be made safely.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};

/// Comments and trailing commas, and nothing else that JSON does not have.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Parses a text; an empty one is an empty object.
#[must_use]
pub fn parse(text: &str) -> Option<Map<String, Value>> {
    let root = CstRootNode::parse(text, &SYNTAX).ok()?;
    if root.value().is_none() {
        return Some(Map::new());
    }
    match root.to_serde_value()? {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

/// Sets `object.name` and returns the new text.
#[must_use]
pub fn set(text: &str, object: &str, name: &str, value: &Value) -> Option<String> {
    edit(text, |root, due| {
        let held = root.object_value_or_create(object)?;
        match held.get(name) {
            Some(member) => member.set_value(input(value)),
            None => _ = held.append(name, input(value)),
        }
        object_of(due, object)?.insert(name.to_owned(), value.clone());
        Some(())
    })
}

/// Removes `object.name`, and `object` if nothing else is in it.
#[must_use]
pub fn remove(text: &str, object: &str, name: &str) -> Option<String> {
    edit(text, |root, due| {
        root.get(object)?.object_value()?.get(name)?.remove();
        object_of(due, object)?.shift_remove(name)?;
        remove_if_empty(root, due, object)
    })
}

/// Appends a value to each of these arrays, `object.name`, and returns the new text.
#[must_use]
pub fn append_items(text: &str, object: &str, items: &[(&str, Value)]) -> Option<String> {
    edit(text, |root, due| {
        let held = root.object_value_or_create(object)?;
        let due = object_of(due, object)?;
        for (name, item) in items {
            held.array_value_or_create(name)?.append(input(item));
            due.entry(*name).or_insert_with(|| Value::Array(Vec::new())).as_array_mut()?.push(item.clone());
        }
        Some(())
    })
}

/// Removes the values for which `is_removed` from all arrays in `object`, then what is left empty.
#[must_use]
pub fn remove_items(text: &str, object: &str, is_removed: impl Fn(&Value) -> bool) -> Option<String> {
    edit(text, |root, due| {
        let arrays = object_of(due, object)?;
        let names: Vec<String> = arrays.keys().cloned().collect();
        for name in names {
            let Some(values) = arrays[&name].as_array_mut() else { continue };
            let member = root.object_value(object)?.get(&name)?;
            let had = values.len();
            for (element, _) in
                member.array_value()?.elements().into_iter().zip(&*values).filter(|(_, value)| is_removed(value))
            {
                element.remove();
            }
            values.retain(|value| !is_removed(value));
            if values.is_empty() && had > 0 {
                arrays.shift_remove(&name);
                member.remove();
            }
        }
        remove_if_empty(root, due, object)
    })
}

/// Has `change` change the tree of the text, and in the same way the values that are due.
fn edit(text: &str, change: impl Fn(&CstObject, &mut Map<String, Value>) -> Option<()>) -> Option<String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let mut due = parse(text)?;
    let root = CstRootNode::parse(text, &SYNTAX).ok()?;
    change(&root.object_value()?, &mut due)?;
    let edited = root.to_string();
    (parse(&edited)? == due).then_some(edited)
}

fn object_of<'a>(due: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    due.entry(name).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

fn remove_if_empty(root: &CstObject, due: &mut Map<String, Value>, name: &str) -> Option<()> {
    if object_of(due, name)?.is_empty() {
        due.shift_remove(name);
        root.get(name)?.remove();
    }
    Some(())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(values) => {
            CstInputValue::Object(values.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry() -> Value {
        json!({"command": "/bin/chorusctl", "args": ["mcp"]})
    }

    #[test]
    fn an_entry_is_added_in_the_style_of_the_file() {
        let added = |text: &str| set(text, "servers", "chorus", &entry()).expect("it is possible");
        let whole = "{\n  \"servers\": {\n    \"chorus\": {\n      \"command\": \"/bin/chorusctl\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}\n";
        assert_eq!(added(""), whole);
        assert_eq!(added("{}\n"), whole);
        assert_eq!(
            added("{\n\t\"servers\": {\n\t\t\"other\": {} // mine, \"}\"\n\t}\n}"),
            "{\n\t\"servers\": {\n\t\t\"other\": {}, // mine, \"}\"\n\t\t\"chorus\": {\n\t\t\t\"command\": \"/bin/chorusctl\",\n\t\t\t\"args\": [\"mcp\"]\n\t\t}\n\t}\n}"
        );
    }

    #[test]
    fn what_was_added_is_removed_without_a_trace() {
        for text in [
            "{}\n",
            "{\n  \"a\": 1\n}\n",
            "{\r\n  \"a\": 1\r\n}\r\n",
            "// top\n{\n    // first\n    \"a\": \"x // y\", // behind\n    \"b\": [1, 2,], /* last */\n}\n// end",
            "{\n  \"servers\": {\n    \"other\": {\"command\": \"x\"}\n  },\n  \"é\": \"\\\"}\"\n}",
            "{\n  \"servers\": {\n    // none\n    \"other\": {},\n  },\n}\n",
        ] {
            let with = set(text, "servers", "chorus", &entry()).expect(text);
            assert_eq!(parse(&with).expect(text)["servers"]["chorus"], entry(), "{with}");
            assert_eq!(remove(&with, "servers", "chorus").as_deref(), Some(text), "{with}");
            let changed = set(&with, "servers", "chorus", &json!({"command": "y"})).expect(&with);
            assert_eq!(remove(&changed, "servers", "chorus").as_deref(), Some(text));
        }
    }

    #[test]
    fn an_entry_in_the_middle_is_removed() {
        let cut = |text: &str| remove(text, "s", "chorus").expect("it is possible");
        assert_eq!(cut("{\"s\": {\"b\": 1, \"chorus\": {}}}"), "{\"s\": {\"b\": 1}}");
        assert_eq!(cut("{\"a\": 1, \"s\": {\"chorus\": {}}}"), "{\"a\": 1}");
        assert_eq!(
            cut("{\n  \"s\": {\n    \"chorus\": {},\n    \"b\": 1 // b\n  }\n}"),
            "{\n  \"s\": {\n    \"b\": 1 // b\n  }\n}"
        );
    }

    #[test]
    fn items_of_arrays_come_and_go() {
        let ours = json!({"command": "chorus"});
        let items = [("Start", ours.clone()), ("End", ours.clone())];
        for text in [
            "{\n  \"model\": \"opus\"\n}\n",
            "{\n  \"hooks\": {\n    \"Start\": [\n      {\"command\": \"x\"} // mine\n    ],\n    \"Other\": []\n  }\n}\n",
        ] {
            let with = append_items(text, "hooks", &items).expect(text);
            let hooks = parse(&with).expect("JSON")["hooks"].clone();
            assert_eq!(hooks["Start"].as_array().and_then(|held| held.last()), Some(&ours), "{with}");
            assert_eq!(hooks["End"], json!([ours]), "{with}");
            assert_eq!(remove_items(&with, "hooks", |item| *item == ours).as_deref(), Some(text), "{with}");
        }
    }

    #[test]
    fn what_is_not_understood_is_not_changed() {
        for text in [
            "{",
            "[]",
            "{\"a\": }",
            "{\"servers\": []}",
            "{\"servers\": 1}",
            "{} {}",
            "{\"a\": \"",
            "{ /* }",
            "{'a': 1}",
            "{a: 1}",
            "{\"servers\": {}, \"servers\": {}}",
        ] {
            assert_eq!(set(text, "servers", "chorus", &entry()), None, "{text}");
            assert_eq!(remove(text, "servers", "chorus"), None, "{text}");
            assert_eq!(append_items(text, "servers", &[("Start", entry())]), None, "{text}");
        }
        assert_eq!(append_items("{\"hooks\": {\"Start\": {}}}", "hooks", &[("Start", entry())]), None);
    }
}
