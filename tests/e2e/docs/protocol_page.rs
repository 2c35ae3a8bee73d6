//! docs/PROTOCOL.md: its client works as it is printed, and its tables name all there is.

use std::fs;
use std::path::Path;

use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::List;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::run_command;
use chorus_tests::{Daemon, schema, skip};
use serde_json::Value;

use crate::home;

const MOST_LINES: usize = 30;

fn beside(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(path).expect("a file of the project")
}

fn page() -> String {
    beside("docs/PROTOCOL.md")
}

/// The first block of Python.
fn program() -> String {
    let page = page();
    let (_, rest) = page.split_once("```python\n").expect("a block of Python");
    rest.split_once("```").expect("its end").0.to_owned()
}

/// The cells of the row that begins with `name`.
fn row(page: &str, name: &str) -> Vec<String> {
    let start = format!("| `{name}` |");
    let row = page.lines().find(|line| line.starts_with(&start));
    let row = row.unwrap_or_else(|| panic!("no row for {name}"));
    row.split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn the_python_client_of_the_page_runs() {
    let program = program();
    let lines = program.lines().count();
    assert!(lines <= MOST_LINES, "{lines} lines, at most {MOST_LINES} were promised");
    let home = home();
    let mut probe = home.command("sh");
    probe.args(["-c", "python3 -c pass"]);
    if run_command(probe, b"").status != 0 {
        return skip("no python3 here");
    }
    let daemon = Daemon::start(&home);
    let file = home.temp_dir().join("client.py");
    fs::write(&file, program).expect("the program");
    let mut command = home.command("python3");
    command.arg(&file);
    let said = run_command(command, b"").expect_success();
    let mut client = daemon.client();
    let agents = client.call::<List>(&Default::default()).expect("a list").agents;
    let agent = &agents.first().expect("the agent it made").name;
    assert!(!client.message_texts(agent).is_empty());
    let session = client.history(agent).pop().expect("the session it saved");
    assert!(said.contains(&session.header.session_id), "{said}");
}

#[test]
fn every_error_kind_is_there_with_its_exit_status() {
    let page = page();
    let kinds: Vec<ErrorKind> = serde_json::from_str(&beside("proto/golden/v1/error.kinds.json")).expect("a list");
    for kind in kinds.into_iter().filter(|kind| *kind != ErrorKind::Unknown) {
        let name = serde_json::to_value(kind).expect("a name");
        let row = row(&page, name.as_str().expect("text"));
        assert_eq!(row[3], kind.exit_status().to_string(), "{name}");
    }
}

#[test]
fn every_method_is_there_with_its_fields() {
    let page = page();
    // A field of a message may be called as a method is.
    let (_, page) = page.split_once("\n## Methods\n").expect("the methods");
    let document = schema::protocol_schema();
    for (method, shapes) in document["methods"].as_object().expect("methods") {
        let row = row(page, method);
        for (shape, cell) in [("params", &row[2]), ("result", &row[3])] {
            for field in shapes[shape]["properties"].as_object().into_iter().flatten().map(|(name, _)| name) {
                let words: Vec<_> = cell.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
                assert!(words.contains(&field.as_str()), "{method}: {field} is not in {cell}");
            }
        }
    }
}

#[test]
fn every_field_of_a_message_and_a_shape_is_there() {
    let page = page();
    let document = schema::protocol_schema();
    for shape in ["Message", "Agent", "ContextInfo", "Session", "DaemonInfo"] {
        let fields = document["$defs"][shape]["properties"].as_object();
        assert!(fields.is_some_and(|fields| !fields.is_empty()), "{shape}");
        for field in fields.into_iter().flatten().map(|(name, _): (&String, &Value)| name) {
            assert!(page.contains(field.as_str()), "{shape}: {field}");
        }
    }
}
