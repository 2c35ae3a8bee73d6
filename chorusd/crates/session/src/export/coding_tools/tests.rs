//! Tests of the files for other programs: with the importers, which read them back, and by what those programs refuse.

use std::io::{self, Cursor};

use bytes::Bytes;
use chorus_proto::methods::export::{ExportFormat, ExportTarget};
use chorus_proto::methods::import::ImportFormat;
use chorus_proto::{Message, Role};
use serde_json::{Value, json};

use super::super::write_for_tool;
use crate::SessionFile;
use crate::file::parse;
use crate::import::{ImportSink, ImportedMetadata, import};

const TOOLS: [(ExportFormat, ImportFormat); 2] =
    [(ExportFormat::ClaudeCode, ImportFormat::ClaudeCode), (ExportFormat::Codex, ImportFormat::Codex)];

/// Parses a session with these messages. Each gets an id and a time.
fn session_of(messages: &[Value]) -> SessionFile {
    let filled = messages.iter().enumerate().map(|(index, message)| {
        let mut message = message.clone();
        let fields = message.as_object_mut().expect("an object");
        fields.entry("id").or_insert_with(|| format!("m{index}").into());
        fields.entry("timestamp").or_insert_with(|| "2026-02-12T09:00:00.123456Z".into());
        message
    });
    let file = json!({
        "schema": 2, "id": "00000000-0000-4000-8000-000000000007", "session_id": "2026-02-12_x",
        "saved_at": "2026-02-12T10:00:00Z", "description": "A  title\nof two lines", "messages": filled.collect::<Value>(),
    });
    parse(&Bytes::from(file.to_string())).expect("a session")
}

fn export(file: &SessionFile, form: ExportFormat) -> Vec<Value> {
    export_text(file, form).lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn export_text(file: &SessionFile, form: ExportFormat) -> String {
    let target = ExportTarget {
        id: "11111111-0000-4000-8000-000000000001".into(),
        directory: "/srv/shop".into(),
        model: None,
        written_at: None,
    };
    let mut text = Vec::new();
    write_for_tool(&mut text, file, form, &target).expect("memory takes it");
    let text = String::from_utf8(text).expect("UTF-8");
    assert!(!text.contains("\\u0000"), "NUL");
    text
}

#[derive(Default)]
struct Reader {
    messages: Vec<Message>,
    about: Vec<ImportedMetadata>,
    skipped: Vec<String>,
}

impl ImportSink for Reader {
    fn begin_session(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn add_message(&mut self, message: &Message, _json: &[u8]) -> io::Result<()> {
        self.messages.push(message.clone());
        Ok(())
    }
    fn end_session(&mut self, about: ImportedMetadata) -> io::Result<()> {
        self.about.push(about);
        Ok(())
    }
    fn report_skipped(&mut self, _line: u64, reason: String) {
        self.skipped.push(reason);
    }
}

fn read_back(lines: &[Value], format: ImportFormat) -> Reader {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut reader = Reader::default();
    let now = "2030-01-01T00:00:00Z".parse().expect("a time");
    let found = import(&mut Cursor::new(text), ImportFormat::Auto, now, &mut || "new".into(), &mut reader);
    assert_eq!(found.expect("it is read"), format);
    assert_eq!(reader.skipped, Vec::<String>::new());
    reader
}

/// Lists what messages say: texts, calls and results. Empty texts and system messages are no part of an export.
fn parts(messages: &[Message]) -> Vec<String> {
    let mut parts = Vec::new();
    for message in messages {
        match message.role {
            Role::System => continue,
            Role::ToolResult => {
                let call = message.tool_call_id.as_deref().unwrap_or_default();
                parts.push(format!("result {call} {}", message.content));
            }
            role if !message.content.trim().is_empty() => parts.push(format!("{} {}", role.as_str(), message.content)),
            _ => {}
        }
        for call in &message.tool_calls {
            let params: Value = serde_json::from_str(call.params.get()).expect("JSON");
            parts.push(format!("call {} {} {params}", call.id, call.name));
        }
    }
    parts
}

fn original(file: &SessionFile) -> Vec<Message> {
    file.messages.iter().map(|message| message.to_message().expect("a message")).collect()
}

/// Exports the messages for each program and reads them back.
fn round_trips(messages: &[Value]) -> [Vec<String>; 2] {
    let file = session_of(messages);
    TOOLS.map(|(form, format)| parts(&read_back(&export(&file, form), format).messages))
}

#[test]
fn a_conversation_comes_back_with_its_texts_calls_and_results() {
    let messages = [
        json!({"role": "system", "content": "You are an agent."}),
        json!({"role": "user", "content": "Look at  both.\n\n```\nx\n```\n"}),
        json!({"role": "assistant", "content": "Looking.", "tool_calls": [
            {"id": "c1", "name": "view", "params": {"path": "a", "n": 1.50}},
            {"id": "c2", "name": "no_such_tool", "params": {}},
        ]}),
        json!({"role": "tool_result", "tool_call_id": "c2", "content": "two"}),
        json!({"role": "tool_result", "tool_call_id": "c1", "content": "", "is_error": true}),
        json!({"role": "assistant", "content": "", "tool_calls": [{"id": "c3", "name": "view", "params": {"path": "b"}}]}),
        json!({"role": "tool_result", "tool_call_id": "c3", "content": "three"}),
        json!({"role": "assistant", "content": "Done."}),
        json!({"role": "user", "content": ""}),
        json!({"role": "user", "content": "Thanks"}),
    ];
    let due = parts(&original(&session_of(&messages)));
    for found in round_trips(&messages) {
        assert_eq!(found, due);
    }
    let [claude, codex] = TOOLS.map(|(form, format)| read_back(&export(&session_of(&messages), form), format));
    assert_eq!(claude.about[0].description.as_deref(), Some("A title of two lines"));
    assert!(claude.messages.iter().any(|message| message.is_error), "Claude Code knows that a call failed");
    for reader in [&claude, &codex] {
        assert_eq!(
            reader.about[0].id.map(|id| id.to_string()).as_deref(),
            Some("11111111-0000-4000-8000-000000000001")
        );
    }
}

#[test]
fn ids_of_calls_that_are_used_again_become_unique_and_stay_paired() {
    let turn = |text: &str| {
        [
            json!({"role": "user", "content": text}),
            json!({"role": "assistant", "content": "", "tool_calls": [
                {"id": "call_0", "name": "ls", "params": {}}, {"id": "functions.x:0", "name": "mcp.files/read", "params": {}},
            ]}),
            json!({"role": "tool_result", "tool_call_id": "call_0", "content": format!("ls of {text}")}),
            json!({"role": "tool_result", "tool_call_id": "functions.x:0", "content": format!("read of {text}")}),
        ]
    };
    for found in round_trips(&[turn("one"), turn("two")].concat()) {
        let calls: Vec<&str> = found.iter().filter(|part| part.starts_with("call ")).map(String::as_str).collect();
        let ids: std::collections::HashSet<&str> = calls.iter().filter_map(|call| call.split(' ').nth(1)).collect();
        assert_eq!((calls.len(), ids.len()), (4, 4), "{calls:?}");
        assert!(calls[1].contains("mcp_files_read"), "{calls:?}");
        let results = found.iter().filter(|part| part.starts_with("result "));
        let texts = ["ls of one", "read of one", "ls of two", "read of two"];
        for (at, (result, text)) in results.zip(texts).enumerate() {
            let id = calls[at].split(' ').nth(1).expect("an id");
            assert_eq!(*result, format!("result {id} {text}"));
        }
    }
}

#[test]
fn what_has_no_pair_is_given_as_text_after_the_results() {
    let messages = [
        json!({"role": "tool_result", "tool_call_id": "gone", "name": "view", "content": "old"}),
        json!({"role": "user", "content": "Go"}),
        json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "a", "name": "ls", "params": {"x": 1}}, {"id": "b", "name": "rm", "params": {"y": 2}},
        ]}),
        json!({"role": "tool_result", "tool_call_id": "other", "content": "strange"}),
        json!({"role": "tool_result", "tool_call_id": "a", "content": "files"}),
        json!({"role": "user", "content": "Stop"}),
        json!({"role": "tool_result", "tool_call_id": "b", "content": "too late"}),
    ];
    let due = [
        "user [result of the tool view]\nold",
        "user Go",
        "assistant [call of the tool rm]\n{\"y\":2}",
        "call a ls {\"x\":1}",
        "result a files",
        "user [result of the tool that was called]\nstrange",
        "user Stop",
        "user [result of the tool that was called]\ntoo late",
    ];
    for found in round_trips(&messages) {
        assert_eq!(found, due);
    }
}

#[test]
fn parameters_that_are_no_object_are_text_for_claude_code_only() {
    let messages = [
        json!({"role": "user", "content": "Patch"}),
        json!({"role": "assistant", "content": "Now.", "tool_calls": [
            {"id": "a", "name": "apply_patch", "params": "*** Begin"}, {"id": "b", "name": "ls", "params": ""},
        ]}),
        json!({"role": "tool_result", "tool_call_id": "a", "content": "ok"}),
        json!({"role": "tool_result", "tool_call_id": "b", "content": "files"}),
    ];
    let [claude, codex] = round_trips(&messages);
    let due = [
        "user Patch",
        "assistant Now.\n\n[call of the tool apply_patch]\n\"*** Begin\"",
        "call b ls {}",
        "result b files",
        "user [result of the tool that was called]\nok",
    ];
    assert_eq!(claude[..4], due[..4]);
    assert_eq!(claude.len(), 5, "{claude:?}");
    assert_eq!(codex[2..4], ["call a apply_patch \"*** Begin\"", "call b ls \"\""]);
}

#[test]
fn nul_and_long_results_and_pictures_take_a_form_that_is_taken() {
    let long = "é".repeat(400 << 10);
    let messages = [
        json!({"role": "user", "content": "a\u{0}b", "attachments": [
            {"name": "p.png", "media_type": "image/png", "data": "aGk="}, {"name": "d.pdf", "media_type": "application/pdf", "size": 9},
            {"name": "n.txt", "media_type": "text/plain", "data": "aGk="},
        ]}),
        json!({"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "cat", "params": {"x": ["\u{0}"]}}]}),
        json!({"role": "tool_result", "tool_call_id": "a", "content": long}),
    ];
    let file = session_of(&messages);
    for (form, format) in TOOLS {
        let reader = read_back(&export(&file, form), format);
        let [user, call, result] = &reader.messages[..] else { panic!("{:?}", reader.messages) };
        assert_eq!(
            user.content,
            "a\u{2400}b\n\n[attached file d.pdf, application/pdf, 9 bytes]\n\n[attached file n.txt]\nhi"
        );
        assert_eq!(user.attachments.iter().map(|file| file.data.as_deref()).collect::<Vec<_>>(), [Some("aGk=")]);
        assert!(call.tool_calls[0].params.get().contains('\u{2400}'));
        let said = "\n[… 557056 bytes left out by Chorus …]\n";
        assert!(result.content.contains(said) && result.content.len() < 300 << 10, "{}", result.content.len());
    }
}

#[test]
fn a_compaction_stays_one_in_the_other_program() {
    let summary =
        "This session is being continued from a previous conversation that ran out of context. It was about owls.";
    let of_claude = json!({"kind": "agent", "format": "claude-code"});
    let claude = [
        json!({"role": "user", "content": "Long ago"}),
        json!({"role": "user", "content": summary, "source": of_claude}),
        json!({"role": "user", "content": "Now"}),
    ];
    let of_codex = json!({"kind": "import", "format": "codex"});
    let codex = [
        json!({"role": "system", "content": "Your instructions.", "source": of_codex}),
        json!({"role": "user", "content": "<environment_context>x", "source": {"kind": "agent", "format": "codex"}}),
        json!({"role": "user", "content": "Long ago"}),
        json!({"role": "system", "content": "It was about owls.", "source": of_codex}),
        json!({"role": "user", "content": "Now"}),
    ];
    for messages in [&claude[..], &codex[..]] {
        let file = session_of(messages);
        let lines = export(&file, ExportFormat::ClaudeCode);
        let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
        assert_eq!(kinds, ["user", "system", "user", "user", "custom-title"]);
        assert_eq!((&lines[1]["subtype"], &lines[1]["parentUuid"]), (&json!("compact_boundary"), &Value::Null));
        assert_eq!(lines[1]["logicalParentUuid"], lines[0]["uuid"]);
        let text = lines[2]["message"]["content"].as_str().expect("a text");
        assert!(lines[2]["isCompactSummary"] == true && text.starts_with("This session is being continued"), "{text}");
        assert!(text.ends_with("It was about owls."), "{text}");
        let lines = export(&file, ExportFormat::Codex);
        let compacted: Vec<_> = lines.iter().filter(|line| line["type"] == "compacted").collect();
        assert_eq!(compacted.len(), 1);
        assert!(compacted[0]["payload"]["message"].as_str().is_some_and(|text| text.ends_with("It was about owls.")));
        assert!(
            !lines.iter().any(|line| line.to_string().contains("instructions") || line.to_string().contains("<env"))
        );
    }
}

#[test]
fn a_working_set_stands_before_a_conversation_that_continues_another() {
    let mut file = session_of(&[json!({"role": "user", "content": "Go on"})]);
    let item = |text: &str| json!([{"id": "1", "text": text, "source": "hand"}]);
    let set = json!({
        "background": "Birds.", "pinned_facts": item("The owl sleeps in barn 3"), "open_tasks": [],
        "conflicts": item("It is barn 3, or barn 4"), "topics": item("owls"), "files_touched": item("barn.rs"),
    });
    file.header.working_set = serde_json::from_value(set).expect("a working set");
    let lines = export(&file, ExportFormat::ClaudeCode);
    assert_eq!((&lines[0]["subtype"], &lines[1]["isCompactSummary"]), (&json!("compact_boundary"), &json!(true)));
    let text = lines[1]["message"]["content"].as_str().expect("a text");
    let known = "Background: Birds.\n\nPinned facts:\n- The owl sleeps in barn 3\n\n\
        Contradictions:\n- It is barn 3, or barn 4\n\nTopics:\n- owls\n\nFiles touched:\n- barn.rs";
    assert!(text.ends_with(known), "{text}");
    assert_eq!(lines[2]["parentUuid"], lines[1]["uuid"]);
}

#[test]
fn lines_of_claude_code_form_a_chain_with_the_ids_of_the_messages() {
    let id = "22222222-0000-4000-8000-000000000002";
    let messages = [
        json!({"role": "user", "content": "Hello", "id": id}),
        json!({"role": "assistant", "content": "Hi", "id": id, "tool_calls": [{"id": "a", "name": "ls", "params": {}}]}),
        json!({"role": "tool_result", "tool_call_id": "a", "content": "", "id": "33333333-0000-4000-8000-000000000003"}),
        json!({"role": "assistant", "content": "There"}),
    ];
    let file = session_of(&messages);
    let mut lines = export(&file, ExportFormat::ClaudeCode);
    assert_eq!(lines.pop().map(|line| line["type"].clone()), Some(json!("custom-title")));
    let uuids: Vec<&Value> = lines.iter().map(|line| &line["uuid"]).collect();
    assert_eq!(uuids[3], "33333333-0000-4000-8000-000000000003");
    assert!(!uuids.contains(&&json!(id)), "an id of two messages would make a loop");
    for (line, before) in lines.iter().zip(std::iter::once(&Value::Null).chain(uuids)) {
        assert_eq!(&line["parentUuid"], before);
        assert_eq!((&line["cwd"], &line["isSidechain"]), (&json!("/srv/shop"), &json!(false)));
        assert_eq!(line["timestamp"], "2026-02-12T09:00:00.123Z");
    }
    assert_eq!(lines[1]["message"]["id"], lines[2]["message"]["id"], "one reply");
    assert_ne!(lines[1]["message"]["id"], lines[4]["message"]["id"]);
    assert_eq!(lines, export(&file, ExportFormat::ClaudeCode)[..5], "the same every time");
}

/// The content of a reply of Gemini CLI or opencode, in the words of [`parts`].
fn parts_of_gemini(lines: &[Value]) -> Vec<String> {
    let mut parts = Vec::new();
    for line in lines.iter().skip(1) {
        match line["type"].as_str() {
            Some("user") => parts.push(format!("user {}", line["content"][0]["text"].as_str().expect("a text"))),
            _ if line["content"] != "" => {
                parts.push(format!("assistant {}", line["content"].as_str().expect("a text")))
            }
            _ => {}
        }
        for call in line["toolCalls"].as_array().into_iter().flatten() {
            parts.push(format!("call {} {} {}", text(&call["id"]), text(&call["name"]), call["args"]));
            let response = &call["result"][0]["functionResponse"];
            assert_eq!((&response["id"], &response["name"]), (&call["id"], &call["name"]));
            let (status, field) = if call["status"] == "error" { ("error", "error") } else { ("success", "output") };
            assert_eq!(call["status"], status);
            parts.push(format!("result {} {}", text(&call["id"]), text(&response["response"][field])));
        }
    }
    parts
}

fn parts_of_opencode(document: &Value) -> Vec<String> {
    let (mut parts, mut ids, mut question) = (Vec::new(), Vec::new(), Value::Null);
    for message in document["messages"].as_array().expect("messages") {
        let info = &message["info"];
        ids.push(text(&info["id"]));
        match info["role"].as_str() {
            Some("user") => question = info["id"].clone(),
            _ => assert_eq!(info["parentID"], question),
        }
        for part in message["parts"].as_array().expect("parts") {
            ids.push(text(&part["id"]));
            assert_eq!((&part["messageID"], &part["sessionID"]), (&info["id"], &document["info"]["id"]));
            let state = &part["state"];
            match part["type"].as_str() {
                Some("text") => parts.push(format!("{} {}", text(&info["role"]), text(&part["text"]))),
                _ => {
                    parts.push(format!("call {} {} {}", text(&part["callID"]), text(&part["tool"]), state["input"]));
                    let said = if state["status"] == "error" { &state["error"] } else { &state["output"] };
                    parts.push(format!("result {} {}", text(&part["callID"]), text(said)));
                }
            }
        }
    }
    let numbers =
        |kind: &str| ids.iter().filter(|id| id.starts_with(kind)).map(|id| id[4..16].to_owned()).collect::<Vec<_>>();
    assert!(numbers("msg_").is_sorted() && numbers("prt_").is_sorted(), "{ids:?}");
    parts
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

#[test]
fn replies_of_gemini_and_opencode_hold_their_results() {
    let messages = [
        json!({"role": "assistant", "content": "Welcome."}),
        json!({"role": "user", "content": "Look"}),
        json!({"role": "assistant", "content": "Looking.", "tool_calls": [
            {"id": "c1", "name": "view", "params": {"path": "a"}}, {"id": "c2", "name": "ls", "params": {}},
            {"id": "c3", "name": "lost", "params": {}},
        ]}),
        json!({"role": "tool_result", "tool_call_id": "c2", "content": "two", "is_error": true}),
        json!({"role": "tool_result", "tool_call_id": "other", "content": "strange"}),
        json!({"role": "tool_result", "tool_call_id": "c1", "content": "one"}),
        json!({"role": "assistant", "content": "Done."}),
    ];
    let file = session_of(&messages);
    let lines = export(&file, ExportFormat::Gemini);
    let mut due = vec![
        "assistant Welcome.",
        "user Look",
        "assistant Looking.\n\n[call of the tool lost]\n{}",
        "call c1 view {\"path\":\"a\"}",
        "result c1 one",
        "call c2 ls {}",
        "result c2 two",
        "user [result of the tool that was called]\nstrange",
        "assistant Done.",
    ];
    assert_eq!(parts_of_gemini(&lines), due);
    assert_eq!(lines[0]["summary"], "A title of two lines");
    let results_last = ["call c1", "call c2", "result c1", "result c2"];
    let sorted = |parts: Vec<String>| {
        // Read back, the results follow all calls of the reply.
        let is_of_reply = |part: &String| results_last.iter().position(|start| part.starts_with(start));
        let mut of_reply: Vec<_> = parts.iter().filter(|part| is_of_reply(part).is_some()).cloned().collect();
        of_reply.sort_by_key(is_of_reply);
        let mut next = of_reply.into_iter();
        parts
            .iter()
            .map(|part| if is_of_reply(part).is_some() { next.next().expect("one") } else { part.clone() })
            .collect::<Vec<_>>()
    };
    let back = read_back(&lines, ImportFormat::Gemini);
    assert_eq!(parts(&back.messages), sorted(parts_of_gemini(&lines)));
    assert!(back.messages.iter().any(|message| message.is_error));
    assert_eq!(back.about[0].conversation.as_deref(), Some("11111111-0000-4000-8000-000000000001"));
    let document: Value = serde_json::from_str(&export_text(&file, ExportFormat::Opencode)).expect("one document");
    due.insert(0, "user [The conversation starts with the reply.]");
    assert_eq!(parts_of_opencode(&document), due);
    let mut renamed = document.clone();
    renamed["info"]["id"] = "ses_1".into();
    let back = read_back(&[renamed], ImportFormat::Opencode);
    assert_eq!(parts(&back.messages), sorted(parts_of_opencode(&document)));
    assert_eq!(back.about[0].project.as_deref(), Some("/srv/shop"));
    assert_eq!(back.about[0].description.as_deref(), Some("A title of two lines"));
    let first = &export(&file, ExportFormat::ClaudeCode)[0];
    assert_eq!((&first["type"], &first["isMeta"]), (&json!("user"), &json!(true)));
}

#[test]
fn a_summary_takes_the_place_of_what_was_before_it() {
    let mut file = session_of(&[json!({"role": "user", "content": "Go on"})]);
    let set = json!({"background": "Birds.", "pinned_facts": [{"id": "1", "text": "Owls sleep", "source": "hand"}]});
    file.header.working_set = serde_json::from_value(set).expect("a working set");
    let lines = export(&file, ExportFormat::Gemini);
    let replaced = lines[1]["$set"]["messages"].as_array().expect("a list");
    assert!(text(&replaced[0]["content"][0]["text"]).starts_with("<state_snapshot>\nBackground: Birds."));
    let back = read_back(&lines, ImportFormat::Gemini).messages;
    assert!(back[0].role == Role::System && back[0].content.starts_with("Background: Birds."), "{back:?}");
    assert_eq!(parts(&back), ["user Go on"]);
    let again =
        session_of(&back.iter().map(|message| serde_json::to_value(message).expect("JSON")).collect::<Vec<_>>());
    assert_eq!(export(&again, ExportFormat::Gemini)[1]["$set"]["messages"][0]["content"], replaced[0]["content"]);
    let document: Value = serde_json::from_str(&export_text(&file, ExportFormat::Opencode)).expect("one document");
    assert_eq!(document["messages"][0]["parts"][0]["type"], "compaction");
    assert_eq!(document["messages"][1]["info"]["summary"], true);
}
