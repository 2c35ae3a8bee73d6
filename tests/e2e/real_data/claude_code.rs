//! Claude Code transcripts, among them one that is odd and broken on purpose.

use std::fs;
use std::path::Path;

use chorus_proto::Role;
use chorus_proto::methods::import::ImportFormat;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::import::import_transcript;
use chorus_tests::{Daemon, real_data};
use serde_json::Value;

use super::reading::Call;
use crate::home;

/// Everything a transcript says, kind by kind, in the order of the file.
#[derive(Debug, Default, PartialEq)]
struct Parts {
    texts: Vec<String>,
    calls: Vec<Call>,
    results: Vec<(String, String)>,
}

/// The text of a tool result: a string, or blocks of text.
fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// Reads the lines that are messages, as plainly as can be; gives also how many lines are broken.
fn expected(path: &Path) -> (Parts, usize) {
    let (mut parts, mut broken) = (Parts::default(), 0);
    for line in fs::read_to_string(path).expect("the file").lines().filter(|line| !line.trim().is_empty()) {
        let Ok(entry) = serde_json::from_str::<Value>(line) else {
            broken += 1;
            continue;
        };
        if !matches!(entry["type"].as_str(), Some("user" | "assistant")) {
            continue;
        }
        let blocks = match &entry["message"]["content"] {
            Value::String(text) => {
                parts.texts.push(text.clone());
                continue;
            }
            Value::Array(blocks) => blocks,
            _ => {
                broken += 1;
                continue;
            }
        };
        for block in blocks {
            let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
            match block["type"].as_str() {
                Some("text") => parts.texts.push(text("text")),
                Some("tool_use") => parts.calls.push((text("id"), text("name"), block["input"].clone())),
                Some("tool_result") => parts.results.push((text("tool_use_id"), result_text(&block["content"]))),
                _ => {}
            }
        }
    }
    (parts, broken)
}

#[test]
fn every_transcript_comes_in_survives_a_crash_and_comes_back() {
    let Some(folder) = real_data::data_dir() else { return };
    let home = home();
    let mut daemon = Daemon::start(&home);
    daemon.client().init("a");
    for path in real_data::files_with_extension(&folder.join("claude-code"), "jsonl") {
        let text = fs::read_to_string(&path).expect("the file");
        let (expected, broken) = expected(&path);
        let name = path.display();
        let mut client = daemon.client();
        let result = import_transcript(&mut client, "a", ImportFormat::Auto, &text, 1000).expect("imported");
        assert!(result.skipped_total as usize >= broken, "{name}: {broken} broken lines, {:?}", result.skipped);
        let ids: Vec<_> = result.sessions.iter().map(|session| session.header.id.to_string()).collect();
        daemon.kill9();
        daemon = Daemon::start(&home);
        let mut client = daemon.client();
        let (mut texts, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for id in ids {
            client.restore("a", &id);
            for message in client.messages("a") {
                for call in message.tool_calls {
                    calls.push((call.id, call.name, serde_json::from_str(call.params.get()).expect("JSON")));
                }
                if message.role == Role::ToolResult {
                    results.push((message.tool_call_id.unwrap_or_default(), message.content));
                } else if !message.content.is_empty() {
                    texts.push(message.content);
                }
            }
        }
        // Blocks of one message are joined; what must hold is that each is there, once, in its order.
        let joined = texts.join("\n");
        let mut from = 0;
        for text in &expected.texts {
            let at = joined[from..].find(text.as_str()).unwrap_or_else(|| panic!("{name}: {text:?} is missing"));
            from += at + text.len();
        }
        let length: usize = expected.texts.iter().map(|text| text.chars().count()).sum();
        let found: usize = texts.iter().map(|text| text.chars().count()).sum();
        assert!(
            found >= length && found <= length + 2 * expected.texts.len(),
            "{name}: {found} characters of {length}"
        );
        assert_eq!(calls, expected.calls, "{name}");
        assert_eq!(results, expected.results, "{name}");
    }
}
