//! How files are named and how long they are.

use std::fs;

use super::source::{root, sources};

const FOLDERS: [&str; 5] = ["proto", "chorusd", "chorusctl", "tests", "xtask"];
const MAX_LINES: usize = 500;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "common", "manager", "helpers", "misc"];

#[test]
fn files_are_short_and_named_after_what_is_inside() {
    for source in FOLDERS.into_iter().flat_map(sources) {
        let lines = source.text.lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines", source.path);
        let named = source.path.split('/').map(|part| part.trim_end_matches(".rs"));
        let empty: Vec<_> = named.filter(|part| EMPTY_NAMES.contains(part)).collect();
        assert!(empty.is_empty(), "{}: {empty:?} says nothing", source.path);
    }
}

#[test]
fn tests_wait_for_conditions_and_all_of_them_run() {
    for source in FOLDERS.into_iter().flat_map(sources) {
        let waits =
            source.text.contains(concat!("thread::", "sleep(")) || source.text.contains(concat!("time::", "sleep("));
        let tests = source.path.starts_with("tests/") || source.path.contains("/tests");
        assert!(!waits || !tests || source.path == "tests/harness/wait.rs", "{} sleeps and hopes", source.path);
        assert!(!source.text.contains(concat!("#[", "ignore")), "{} leaves a test out", source.path);
    }
}

#[test]
fn exceptions_from_a_lint_are_expected_and_say_why() {
    for source in FOLDERS.into_iter().flat_map(sources) {
        let code = source.text.replace(char::is_whitespace, "");
        assert!(!code.contains(concat!("#[", "allow(")), "{}: `expect` with a reason instead of `allow`", source.path);
        for part in code.split(concat!("#[", "expect(")).skip(1) {
            let end = part.find(")]").expect("the end of the attribute");
            assert!(part[..end].contains("reason="), "{}: an exception without a reason", source.path);
        }
    }
}

/// Errors of these crates reach people through every front door, most of which have neither keys nor a socket.
#[test]
fn hints_of_the_core_name_neither_keys_nor_the_socket() {
    for source in ["chorusd/crates/agent-core", "chorusd/crates/engine/src/agent", "chorusd/crates/engine/src/ops"]
        .into_iter()
        .flat_map(sources)
    {
        let code = source.code();
        let foreign: Vec<_> = ["Ctrl-", "on the socket"].into_iter().filter(|word| code.contains(word)).collect();
        assert!(foreign.is_empty(), "{}: {foreign:?} is of one front door", source.path);
    }
}

/// Every verb has a file of its name on both sides: `context.append` is `context/append.rs`.
#[test]
fn every_verb_has_a_file_on_both_sides() {
    let schema = fs::read_to_string(root().join("docs/protocol.schema.json")).expect("the schema");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    let paths: Vec<String> = ["chorusd/crates/engine/src", "chorusctl/src"]
        .into_iter()
        .flat_map(sources)
        .map(|source| source.path)
        .collect();
    for method in schema["methods"].as_object().expect("methods").keys() {
        // An import is three requests and one command, an export two.
        let parts = [".begin", ".add", ".commit", ".select", ".read"];
        let verb = parts.iter().find_map(|part| method.strip_suffix(part));
        let verb = verb.unwrap_or(method).replace('.', "/");
        for side in ["chorusd/crates/engine/src/ops", "chorusctl/src/commands"] {
            // `hello` and `daemon.stop` are a line each beside `status`; `session.get` is `session show`,
            // `permissions rules` also removes, `events` lists or follows, `cancel` and `send --cancel` are one.
            let name = match (&*verb, side) {
                ("hello", "chorusctl/src/commands") => continue,
                ("hello" | "status" | "daemon/stop", "chorusd/crates/engine/src/ops") => "daemon",
                ("session/get", "chorusctl/src/commands") => "session/show",
                ("send/cancel", "chorusctl/src/commands") => "cancel",
                // A client attaches with `chat --attach`.
                ("context/attach", "chorusctl/src/commands") => "chat/attach",
                ("context/attach", _) => "conversations/attach",
                ("permissions/remove_rule", "chorusctl/src/commands") => "permissions/rules",
                ("events/list" | "events/subscribe", "chorusctl/src/commands") => "events",
                (verb, _) => verb,
            };
            let due = format!("{side}/{name}");
            // `use` is a word of the language: its file is use_.rs.
            let names = [format!("{due}.rs"), format!("{due}_.rs"), format!("{due}/mod.rs")];
            let there = paths.iter().any(|path| names.contains(path));
            assert!(there, "{method}: no {due}.rs");
        }
    }
}
