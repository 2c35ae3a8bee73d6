//! docs/protocol.schema.json is what the wire types say, and the golden files use all of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use chorus_tests::schema;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// `cargo xtask bless` regenerates the file.
#[test]
fn the_schema_file_is_up_to_date() {
    let path = root().join("docs/protocol.schema.json");
    let mut generated = serde_json::to_string_pretty(&schema::protocol_schema()).expect("serialises");
    generated.push('\n');
    if std::env::var_os("CHORUS_BLESS").is_some() {
        fs::write(&path, &generated).expect("writes the schema");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == generated, "docs/protocol.schema.json is out of date: run `cargo xtask bless`");
}

#[test]
fn the_schema_has_every_method_of_the_golden_files() {
    let document = schema::protocol_schema();
    let described: BTreeSet<String> = document["methods"].as_object().expect("methods").keys().cloned().collect();
    let golden: BTreeSet<String> =
        golden().iter().filter_map(|(name, _)| Some(name.split_once(".request.")?.0.to_owned())).collect();
    assert_eq!(described, golden);
}

/// Every field and every word of an enumeration occurs in a golden file: none can change unseen.
#[test]
fn the_golden_files_use_every_field_and_word() {
    let document = schema::protocol_schema();
    let text: String = golden().into_iter().map(|(_, text)| text).collect();
    let mut wanted = BTreeSet::new();
    collect(&document["methods"], &mut wanted);
    collect(&document["send_progress"], &mut wanted);
    collect(&document["$defs"], &mut wanted);
    let missing: Vec<_> = wanted.iter().filter(|word| !text.contains(&format!("\"{word}\""))).collect();
    assert!(missing.is_empty(), "in no golden file: {missing:?}");
}

/// The property names and the string constants below `schema`.
fn collect(schema: &Value, into: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("properties", Value::Object(fields)) => into.extend(fields.keys().cloned()),
                    ("enum", Value::Array(words)) => {
                        into.extend(words.iter().filter_map(Value::as_str).map(Into::into))
                    }
                    ("const", Value::String(word)) => _ = into.insert(word.clone()),
                    _ => {}
                }
                collect(value, into);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, into)),
        _ => {}
    }
}

fn golden() -> Vec<(String, String)> {
    let entries = fs::read_dir(root().join("proto/golden/v1")).expect("the golden folder");
    let paths =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.extension() == Some("json".as_ref()));
    paths
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(path).expect("a readable file"))
        })
        .collect()
}
