//! Tests the importers with real transcripts against a second, simple parser of the same files.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use chorus_proto::Role;
use chorus_proto::methods::export::{ExportFormat, ExportTarget};
use chorus_proto::methods::import::ImportFormat;
use serde_json::Value;

use super::test_support::{ImportedSession, RecordingSink, import_as};
use crate::export::write_for_tool;

/// Role, text, name and parameters of each tool call, and the id of the call that a result belongs to.
type Reading = (String, String, Vec<(String, Value)>, Option<String>);

fn folder(name: &str) -> Vec<PathBuf> {
    let root = std::env::var_os("CHORUS_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"), PathBuf::from);
    let Ok(entries) = fs::read_dir(root.join(name)) else {
        report_skip(&format!("no {name} in {}", root.display()));
        return Vec::new();
    };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json" || ending == "jsonl"));
    files.sort();
    files
}

/// Reports a skip as the end-to-end tests do: past the capture of test output. Fails if no test may be skipped.
fn report_skip(why: &str) {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let permitted = variable("CHORUS_TESTS_MAY_SKIP").split(',').any(|need| need.trim() == "real-data");
    assert!(permitted || variable("CHORUS_TESTS_REQUIRE") != "all", "{why}: skipped under CHORUS_TESTS_REQUIRE=all");
    let _ = io::stderr().write_all(format!("skipped real transcripts: {why}\n").as_bytes());
}

fn import_file(path: &Path, format: ImportFormat) -> RecordingSink {
    let memory = import_as(ImportFormat::Auto, fs::read(path).unwrap()).unwrap();
    assert_eq!(memory.format, format, "{}", path.display());
    memory
}

fn readings(found: &ImportedSession) -> Vec<Reading> {
    let read = |message: &chorus_proto::Message| {
        let calls = message.tool_calls.iter();
        let calls = calls.map(|call| (call.name.clone(), serde_json::from_str(call.params.get()).unwrap()));
        (message.role.as_str().to_owned(), message.content.clone(), calls.collect(), message.tool_call_id.clone())
    };
    found.messages.iter().map(read).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn openai(message: &Value) -> Reading {
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
        let arguments = text(&call["function"]["arguments"]);
        let parsed = serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
        (text(&call["function"]["name"]), parsed)
    });
    let role = if message["role"] == "tool" { "tool_result".into() } else { text(&message["role"]) };
    (role, text(&message["content"]), calls.collect(), message["tool_call_id"].as_str().map(Into::into))
}

#[test]
fn chat_messages_come_whole() {
    for path in [folder("tau-bench"), folder("swe-agent")].concat() {
        let memory = import_file(&path, ImportFormat::Openai);
        let list: Vec<Value> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(memory.skipped, [], "{}", path.display());
        assert_eq!(memory.sessions.len(), 1);
        let expected: Vec<_> = list.iter().map(openai).collect();
        assert_eq!(readings(&memory.sessions[0]), expected, "{}", path.display());
    }
}

/// Parses a transcript without branches: the readable messages in the order of the file, one line for each uuid.
fn claude_code(path: &Path) -> Vec<Reading> {
    let mut seen = Vec::new();
    let mut readings = Vec::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        let content = &line["message"]["content"];
        if content.is_null() || seen.contains(&line["uuid"]) {
            continue;
        }
        seen.push(line["uuid"].clone());
        let blocks = content.as_array().cloned().unwrap_or_else(|| vec![content.clone()]);
        let (mut texts, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for block in blocks {
            match block["type"].as_str() {
                Some("tool_use") => calls.push((text(&block["name"]), block["input"].clone())),
                Some("tool_result") => {
                    let id = block["tool_use_id"].as_str().map(Into::into);
                    results.push(("tool_result".into(), text(&block["content"]), Vec::new(), id));
                }
                Some("text") => texts.push(text(&block["text"])),
                _ => texts.extend(block.as_str().map(String::from)),
            }
        }
        let none_left = texts.is_empty() && calls.is_empty();
        readings.append(&mut results);
        if !none_left {
            readings.push((text(&line["type"]), texts.join("\n\n"), calls, None));
        }
    }
    readings
}

#[test]
fn transcripts_come_whole() {
    for path in folder("claude-code") {
        let memory = import_file(&path, ImportFormat::ClaudeCode);
        assert_eq!(memory.sessions.len(), 1, "{}", path.display());
        assert_eq!(readings(&memory.sessions[0]), claude_code(&path), "{}", path.display());
        let odd = path.ends_with("edge_cases.jsonl");
        assert_eq!(memory.skipped.len(), if odd { 6 } else { 0 }, "{:?}", memory.skipped);
        let named = !path.ends_with("session_b.jsonl");
        assert_eq!(memory.sessions[0].about.description.is_some(), named, "{}", path.display());
    }
}

/// Lists texts, calls and results, without what an export for another program leaves out.
fn exported_parts(found: &ImportedSession) -> Vec<String> {
    let mut parts = Vec::new();
    for message in &found.messages {
        let calls = message.tool_calls.iter().map(|call| {
            let params: Value = serde_json::from_str(call.params.get()).unwrap();
            format!("call {} {params}", call.name)
        });
        let said = match message.role {
            Role::System => continue,
            // An id that was used before is another one there.
            Role::ToolResult => Some(format!("result {}", message.content)),
            role => {
                Some(format!("{} {}", role.as_str(), message.content)).filter(|_| !message.content.trim().is_empty())
            }
        };
        parts.extend(said.into_iter().chain(calls));
    }
    parts
}

#[test]
fn conversations_come_back_whole_from_files_for_other_programs() {
    let paths = [folder("tau-bench"), folder("swe-agent"), folder("claude-code")].concat();
    for path in paths {
        let memory = import_as(ImportFormat::Auto, fs::read(&path).unwrap()).unwrap();
        for session in &memory.sessions {
            let messages: Vec<Value> = session.json.iter().map(|json| serde_json::from_str(json).unwrap()).collect();
            let file = serde_json::json!({
                "schema": 2, "id": "00000000-0000-4000-8000-000000000007", "session_id": "2026-02-12_x",
                "saved_at": "2026-02-12T10:00:00Z", "messages": messages,
            });
            let file = crate::file::parse(&bytes::Bytes::from(file.to_string())).unwrap();
            let target =
                |id: &str| ExportTarget { id: id.to_owned(), directory: "/w".into(), model: None, written_at: None };
            let uuid = "11111111-0000-4000-8000-000000000001";
            for (form, format, id) in [
                (ExportFormat::ClaudeCode, ImportFormat::ClaudeCode, uuid),
                (ExportFormat::Codex, ImportFormat::Codex, uuid),
                (ExportFormat::Gemini, ImportFormat::Gemini, uuid),
                (ExportFormat::Opencode, ImportFormat::Opencode, "ses_1"),
            ] {
                let mut text = Vec::new();
                write_for_tool(&mut text, &file, form, &target(id)).unwrap();
                let again = import_as(format, text).unwrap();
                assert_eq!((again.skipped, again.sessions.len()), (Vec::new(), 1), "{}", path.display());
                let (found, due) = (exported_parts(&again.sessions[0]), exported_parts(session));
                if path.ends_with("edge_cases.jsonl") {
                    // Two calls have no result.
                    assert_eq!(found.join("\n").matches("[call of the tool ").count(), 2);
                    continue;
                }
                assert_eq!(found, due, "{} {form:?}", path.display());
            }
        }
    }
}
