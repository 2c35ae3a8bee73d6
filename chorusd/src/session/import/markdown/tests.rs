use std::io::Write as _;

use bytes::Bytes;
use chorus_proto::Role;
use chorus_proto::methods::export::ExportFormat;
use chorus_proto::methods::import::ImportFormat::{Auto, Markdown};
use serde_json::{Value, json};

use super::super::testing::{Found, import_as};
use crate::session::{SessionFile, export, file};

/// A session file of these messages.
fn session(messages: &[Value]) -> SessionFile {
    let whole = json!({"schema": 2, "id": "7d444840-9dc0-41d1-b245-5ffdce74fad2", "session_id": "2026-01-02_a-talk",
        "description": "A --> talk\nof two lines", "summary": "## User\nThey talked.", "summary_source": "given",
        "saved_at": "2026-01-02T03:04:05Z", "tags": ["x"], "message_count": messages.len(), "messages": messages});
    file::parse(&Bytes::from(whole.to_string())).unwrap()
}

fn again(file: &SessionFile) -> Found {
    let mut text = Vec::new();
    export::write(&mut text, file, ExportFormat::Md).unwrap();
    text.flush().unwrap();
    let mut memory = import_as(Auto, &text).unwrap();
    assert_eq!((memory.format, memory.sessions.len()), (Markdown, 1), "{}", String::from_utf8_lossy(&text));
    assert_eq!(memory.skipped, []);
    memory.sessions.remove(0)
}

/// Texts that would trip a careless reader.
const TEXTS: [&str; 18] = [
    "plain",
    "",
    "\n",
    "\n\n",
    " a \n\nb\n",
    "\n\nlead",
    "## User · 2026-01-01T00:00:00Z",
    "a\n## Assistant\nb",
    "```text content\nx\n```",
    "```rust\nfn a() {}\n```",
    "```\nleft open",
    "``````",
    "<!-- chorus message {} -->",
    "-->",
    "a\r\nb\r",
    "nul \u{0} bell \u{7} nel \u{85} ls \u{2028}",
    "# Title\n- list",
    "你好 · é",
];

#[test]
fn every_text_comes_back_in_every_role() {
    let mut messages = Vec::new();
    for (n, text) in TEXTS.iter().enumerate() {
        for role in ["system", "user", "assistant", "tool_result"] {
            messages.push(json!({"id": format!("m{n}"), "role": role, "content": text,
                "timestamp": format!("2026-01-02T03:{n:02}:05.123456789Z")}));
        }
    }
    let file = session(&messages);
    let found = again(&file);
    for (read, stored) in found.messages.iter().zip(&file.messages) {
        let wanted = stored.to_message().unwrap();
        assert_eq!((read.role, &read.content), (wanted.role, &wanted.content));
        assert_eq!((read.timestamp, &read.id), (wanted.timestamp, &wanted.id));
    }
    assert_eq!(found.messages.len(), messages.len());
}

#[test]
fn calls_results_and_the_rest_come_back() {
    let params = [json!({}), json!({"a": "```\n````", "b": [1, null]}), json!("text"), json!({"n": -1})];
    let calls: Vec<Value> =
        params.iter().map(|params| json!({"id": "c \"`1`\"", "name": "do `it`\n", "params": params})).collect();
    let messages = [
        json!({"id": "1", "role": "user", "content": "x", "timestamp": "2026-01-02T03:00:00Z",
            "author": {"id": "7", "name": "mara · (b)"}, "source": {"kind": "cli"},
            "attachments": [{"name": "a.png", "data": "aGk=", "size": 2}]}),
        json!({"id": "2", "role": "assistant", "content": "", "timestamp": "2026-01-02T03:00:01Z", "tool_calls": calls,
            "usage": {"input_tokens": 5, "cost_usd": 0.25}, "generated": true}),
        json!({"id": "3", "role": "tool_result", "content": "failed", "timestamp": "2026-01-02T03:00:02Z",
            "tool_call_id": "c \"`1`\"", "name": "do `it`\n", "is_error": true}),
    ];
    let file = session(&messages);
    let found = again(&file);
    for (read, stored) in found.json.iter().zip(&messages) {
        let mut read: Value = serde_json::from_str(read).unwrap();
        let mut stored = stored.clone();
        // Pictures lose their bytes, and what has no source gets one.
        for message in [&mut read, &mut stored] {
            let fields = message.as_object_mut().unwrap();
            fields.retain(|key, value| key != "source" || value["kind"] == "cli");
            if let Some(picture) = fields.get_mut("attachments").and_then(|list| list[0].as_object_mut()) {
                picture.remove("data");
            }
        }
        assert_eq!(read, stored);
    }
    let about = &found.about;
    assert_eq!(about.description.as_deref(), Some("A --> talk\nof two lines"));
    assert_eq!(about.summary.as_deref(), Some("## User\nThey talked."));
    assert_eq!((about.session_id.as_deref(), &*about.tags), (Some("2026-01-02_a-talk"), &["x".to_owned()][..]));
}

#[test]
fn digits_of_parameters_stay() {
    let text = "## Assistant\n\n```json call \"c\" \"t\"\n{\"a\":1.10,\"b\":1e400}\n```\n";
    let found = import_as(Markdown, text).unwrap();
    assert_eq!(found.sessions[0].messages[0].tool_calls[0].params.get(), "{\"a\":1.10,\"b\":1e400}");
}

#[test]
fn what_a_person_wrote_by_hand_is_read() {
    let text = "# A plan\r\n\r\nSome words.\r\n\r\n## User\r\n\r\nHello\r\nthere\r\n\r\n## Assistant\r\n\r\nHi!";
    let found = import_as(Auto, text).unwrap();
    let session = &found.sessions[0];
    assert_eq!(session.talk(), ["user: Hello\nthere", "assistant: Hi!"]);
    assert_eq!(session.about.description.as_deref(), Some("A plan"));
    assert_eq!(session.messages[0].source.as_ref().unwrap().format.as_deref(), Some("markdown"));
}

#[test]
fn what_is_broken_is_told() {
    let text = "## Assistant\n<!-- chorus message {oops} -->\n\n```json call \"c\" \"t\"\nnot json\n```\n\n\
                ## Tool result\n\n```text content\ncut";
    let found = import_as(Markdown, text).unwrap();
    let session = &found.sessions[0];
    assert_eq!(session.messages[0].tool_calls[0].params.get(), "\"not json\"");
    assert_eq!((session.messages[1].role, &*session.messages[1].content), (Role::ToolResult, "cut"));
    let lines: Vec<_> = found.skipped.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 6, 11]);
}
