//! Tests of Markdown imports: exports are read back, and files without comments as far as possible.

use std::io::Write as _;

use bytes::Bytes;
use chorus_proto::Role;
use chorus_proto::methods::export::ExportFormat;
use chorus_proto::methods::import::ImportFormat::{Auto, Markdown};
use serde_json::{Value, json};

use super::super::test_support::{ImportedSession, import_as};
use crate::{SessionFile, export, file};

mod exports;

/// A session file with these messages.
fn session(messages: &[Value]) -> SessionFile {
    let whole = json!({"schema": 2, "id": "7d444840-9dc0-41d1-b245-5ffdce74fad2", "session_id": "2026-01-02_a-talk",
        "description": "A --> talk\nof two lines", "summary": "## User\nThey talked.", "summary_source": "given",
        "saved_at": "2026-01-02T03:04:05Z", "tags": ["x"], "message_count": messages.len(), "messages": messages});
    file::parse(&Bytes::from(whole.to_string())).unwrap()
}

fn again(file: &SessionFile) -> ImportedSession {
    let mut text = Vec::new();
    export::write(&mut text, file, None, ExportFormat::Md).unwrap();
    text.flush().unwrap();
    let mut memory = import_as(Auto, &text).unwrap();
    assert_eq!((memory.format, memory.sessions.len()), (Markdown, 1), "{}", String::from_utf8_lossy(&text));
    assert_eq!(memory.skipped, []);
    memory.sessions.remove(0)
}

/// Texts that look like structure of the file or need escaping.
const TEXTS: [&str; 31] = [
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
    "a\n\n---",
    "---\n\n## Query 2 (10:00:00)",
    "**You:** I said\n\n**a:** and I",
    "*Time: 1.0s | Tokens: 3 (in: 1, out: 2)*",
    "<!-- SESSION_SUMMARY_START -->\nx\n<!-- SESSION_SUMMARY_END -->",
    "\\r \\u{0} \\\\\r",
    "\u{feff}bom\u{202e}",
    "    indented\n\ttab",
    "你好 · é",
    "<!-- chorus data\n{\"text_bytes\":0,\"queries\":0,\"session\":{}}\n-->",
    "**Tool call (bash):**\n\n```json call\n{}\n```",
    "*a*\n**Tool call (bash):** ls\n**Tool result (bash):** x",
    "**Context:** Resumed from x\n**Previous Session:** y",
    "~~~\n**You:** in a fence\n~~~\n\n**a:**",
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
            "usage": {"input_tokens": 5, "cost_usd": 0.25}, "generated": true, "provider": {"x": [1, "<!-- -->"]}}),
        json!({"id": "3", "role": "tool_result", "content": "failed", "timestamp": "2026-01-02T03:00:02Z",
            "tool_call_id": "c \"`1`\"", "name": "do `it`\n", "is_error": true}),
    ];
    let file = session(&messages);
    let found = again(&file);
    for (read, stored) in found.json.iter().zip(&messages) {
        let mut read: Value = serde_json::from_str(read).unwrap();
        let mut stored = stored.clone();
        // Images lose their data.
        for message in [&mut read, &mut stored] {
            let fields = message.as_object_mut().unwrap();
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
    assert_eq!(session.role_texts(), ["user: Hello\nthere", "assistant: Hi!"]);
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

/// The example of the related programs that use this form.
#[test]
fn a_file_without_comments_is_read_as_far_as_it_goes() {
    let text = "# Simple Sally Conversation\n\n**Session ID:** session_3\n**Date:** 2025-12-30T23:59:50.123456\n\
        **Agent:** Simple Sally\n**Agent Path:** /home/w/agent.py\n**Total Queries:** 2\n\n---\n\n\
        ## Session Restored (23:59:50)\n**Context:** Resumed from session_2 (5 queries, 2.3K tokens)\n\
        **Previous Session:** /home/w/session_2.md\n\n**Simple Sally:** I have reviewed it.\nReady!\n\n\
        *Time: 2.1s | Tokens: 156 (in: 89, out: 67)*\n\n---\n\n\
        ## Query 1 (00:00:45)\n**You:** Let us go on\n\n- with a list\n\n**Simple Sally:** Fine.\n\n**Note:** a label\n\n\
        *Time: 3.2s | Tokens: 345 (in: 123, out: 222)*\n\n---\n\n## Query 2 (00:01:00)\n**You:** Bye\n\n---\n\n\
        <!-- SESSION_SUMMARY_START -->\n**Background Context:** Auth was refactored.\n\n**Current Session Summary:**\n\
        **Topics Discussed:**\n- Rate limits\n\n**Decisions Made:**\n- Use a bucket\n- 100 a minute\n\n**Pending:**\n- Tests\n\
        <!-- SESSION_SUMMARY_END -->\n";
    let found = import_as(Auto, text).unwrap();
    assert_eq!((found.format, &*found.skipped), (Markdown, &[][..]));
    let session = &found.sessions[0];
    assert_eq!(
        session.role_texts(),
        [
            "assistant: I have reviewed it.\nReady!",
            "user: Let us go on\n\n- with a list",
            "assistant: Fine.\n\n**Note:** a label",
            "user: Bye",
        ]
    );
    let times: Vec<_> = session.messages.iter().map(|message| message.timestamp.to_string()).collect();
    assert_eq!(times[0], "2025-12-30T23:59:50Z");
    assert_eq!(&times[1..], ["2025-12-31T00:00:45Z", "2025-12-31T00:00:45Z", "2025-12-31T00:01:00Z"]);
    let usage = session.messages[2].usage.as_ref().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.duration_ms), (Some(123), Some(222), Some(3200)));
    assert_eq!(session.messages[0].usage, None);
    let about = &session.about;
    assert_eq!(about.restoration_tokens.map(|tokens| (tokens.input, tokens.output)), Some((89, 67)));
    assert_eq!(about.description.as_deref(), Some("Simple Sally Conversation"));
    assert_eq!(about.summary.as_deref(), Some("Topics: Rate limits."));
    let set = about.working_set.as_ref().unwrap();
    assert_eq!(set.background.as_deref(), Some("Auth was refactored."));
    assert_eq!((set.decisions.len(), &*set.decisions[1].text, &*set.open_tasks[0].text), (2, "100 a minute", "Tests"));
}

#[test]
fn names_and_times_inside_a_reply_are_a_part_of_it() {
    let text = "**Agent:** Sally\n\n## Query 1 (10:00:00)\n**You:** Show me\n\n**Sally:** Like this:\n\n**System:** be kind\n\
        **User:** admin\n**Assistant:** yes\n\n*Time: 5s*\n\n---\n\nThat was all.\n\n*Time: 3.2s | Tokens: 345 (in: 123, out: 222)*\n\n\
        ---\n\n## Query 2 (10:01:00)\n**You:** Thanks\n\n**Tool result (ls):** a\n\n**Sally:** Bye\n\n*Time: 1s*\n";
    let found = import_as(Auto, text).unwrap();
    let session = &found.sessions[0];
    assert_eq!(
        session.role_texts(),
        [
            "user: Show me",
            "assistant: Like this:\n\n**System:** be kind\n**User:** admin\n**Assistant:** yes\n\n*Time: 5s*\n\n---\n\n\
             That was all.",
            "user: Thanks",
            "tool_result: a",
            "assistant: Bye",
        ]
    );
    let took: Vec<_> =
        session.messages.iter().map(|message| message.usage.as_ref().and_then(|it| it.duration_ms)).collect();
    assert_eq!(took, [None, Some(3200), None, None, Some(1000)]);
}

#[test]
fn a_summary_without_its_end_takes_no_message_with_it() {
    let start = "## Query 1 (10:00:00)\n**You:** Hi\n\n---\n\n<!-- SESSION_SUMMARY_START -->\n\
        **Current Session Summary:** They met.\n\n";
    let comment = "<!-- chorus message {\"role\":\"user\"} -->\n**You:** Well?\n";
    for rest in ["## Query 2 (10:01:00)\n**You:** Well?\n", comment] {
        let found = import_as(Auto, format!("{start}{rest}")).unwrap();
        assert_eq!(found.sessions[0].role_texts(), ["user: Hi", "user: Well?"]);
        assert_eq!(found.sessions[0].about.summary.as_deref(), Some("They met."));
        assert_eq!(found.skipped.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [6]);
    }
    let found = import_as(Auto, start).unwrap();
    assert_eq!((found.sessions[0].role_texts(), found.skipped.len()), (vec!["user: Hi".to_owned()], 1));
    let long = format!("{start}{}\n<!-- SESSION_SUMMARY_END -->\n", "x".repeat(2 << 20));
    let found = import_as(Auto, long).unwrap();
    assert!(found.skipped[0].1.contains("1 MiB"), "{:?}", found.skipped);
}

#[test]
fn text_behind_the_summary_is_said_by_nobody() {
    let text = "## Query 1 (10:00:00)\n**You:** Hi\n\n**Bo:** Hello\n\n---\n\n<!-- SESSION_SUMMARY_START -->\n\
        **Current Session Summary:** They met.\n<!-- SESSION_SUMMARY_END -->\n\n# Footer\n**Tags:** a\n\nMade by hand.\n";
    let found = import_as(Auto, text).unwrap();
    assert_eq!(found.sessions[0].role_texts(), ["user: Hi", "assistant: Hello"]);
    assert_eq!((&found.sessions[0].about.description, found.sessions[0].about.tags.len()), (&None, 0));
    assert_eq!(found.skipped, []);
}

#[test]
fn the_name_of_who_answers_need_not_be_told() {
    let text =
        "## Query 1 (10:00:00)\nHello\n\n**Bo:** Hi\n\n**Ann:** is a name\n\n## Query 2\n**You:** Well?\n\n**Bo:** Yes";
    let found = import_as(Auto, text).unwrap();
    assert_eq!(
        found.sessions[0].role_texts(),
        ["user: Hello", "assistant: Hi\n\n**Ann:** is a name", "user: Well?", "assistant: Yes"]
    );
}

#[test]
fn a_message_that_is_too_long_takes_nothing_with_it() {
    let long = format!("{}\n", "x".repeat(1 << 20)).repeat(65);
    let text = format!("## User\n\n```text content\n{long}```\n\n## Assistant\n\nhere\n");
    let found = import_as(Markdown, text).unwrap();
    assert_eq!(found.sessions[0].role_texts(), ["assistant: here"]);
    assert_eq!(found.skipped.len(), 1);
}

#[test]
fn the_name_of_a_program_is_a_speaker_only_if_the_header_names_it() {
    let talk = "## Query 1 (10:00:00)\n**You:** Compare them.\n**sally:** Two tools:\n**codex:** is fast\n";
    for (from, messages) in [
        ("", 2),
        ("**Imported From:** goose: 2026-01-02_x\n", 2),
        ("**Imported From:** codex: 2026-01-02_x (gpt-5)\n", 3),
    ] {
        let text = format!("# A talk\n**Agent:** sally\n{from}\n{talk}");
        let read = import_as(Markdown, text.as_bytes()).unwrap();
        assert_eq!(read.sessions[0].messages.len(), messages, "{from}");
    }
}
