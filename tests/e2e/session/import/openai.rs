//! OpenAI chat messages, as a JSON list or a line each.

use chorus_proto::methods::import::ImportFormat;
use chorus_proto::{Role, Trigger};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::import::import_transcript;
use serde_json::{Value, json};

use crate::home;

fn talk() -> Vec<Value> {
    vec![
        json!({"role": "system", "content": "Answer in short sentences."}),
        json!({"role": "user", "content": [{"type": "text", "text": "part one"}, {"type": "text", "text": "part two"}]}),
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{\"q\": 1.10, \"n\": 12345678901234567890}"}},
            {"id": "call_2", "type": "function", "function": {"name": "broken", "arguments": "{not json"}},
        ]}),
        json!({"role": "tool", "tool_call_id": "call_1", "name": "look", "content": "found"}),
        json!({"role": "tool", "tool_call_id": "call_2", "content": ""}),
        json!({"role": "developer", "content": "A word from the developer."}),
        json!({"role": "assistant", "content": "Done."}),
    ]
}

fn check(text: &str, from: ImportFormat) {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let result = import_transcript(&mut client, "a", from, text, 1000).expect("imported");
    assert_eq!((result.sessions.len(), result.skipped_total), (1, 0), "{result:?}");
    assert_eq!(result.sessions[0].header.trigger, Trigger::Import);
    let (_, messages) = client.get_session("a", "latest");
    let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
    let tool = Role::ToolResult;
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, tool, tool, Role::System, Role::Assistant]);
    assert!(messages[1].content.contains("part one") && messages[1].content.contains("part two"));
    let calls: Vec<_> = messages[2].tool_calls.iter().map(|call| (&*call.id, &*call.name, call.params.get())).collect();
    assert_eq!(calls[0], ("call_1", "look", r#"{"q": 1.10, "n": 12345678901234567890}"#), "digit for digit");
    assert_eq!((calls[1].0, calls[1].1), ("call_2", "broken"));
    assert!(calls[1].2.contains("{not json"), "arguments that are no JSON are kept as text: {}", calls[1].2);
    assert_eq!(messages[3].tool_call_id.as_deref(), Some("call_1"));
    assert_eq!((&*messages[3].content, messages[3].name.as_deref()), ("found", Some("look")));
    assert_eq!(messages[4].content, "");
    let source = messages[0].source.as_ref().expect("a source");
    assert_eq!(source.format.as_deref(), Some("openai"));
}

#[test]
fn a_list_is_taken() {
    check(&json!(talk()).to_string(), ImportFormat::Openai);
    check(&serde_json::to_string_pretty(&talk()).expect("serialises"), ImportFormat::Auto);
}

#[test]
fn an_object_with_messages_is_taken() {
    check(&json!({"model": "some-model", "messages": talk()}).to_string(), ImportFormat::Auto);
}

#[test]
fn a_line_for_each_message_is_taken() {
    let lines: String = talk().iter().map(|message| format!("{message}\n")).collect();
    check(&lines, ImportFormat::Openai);
    check(&format!("\n{}", lines.replace('\n', "\r\n")), ImportFormat::Auto);
}

#[test]
fn what_cannot_be_read_is_skipped_and_named() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let lines = [
        r#"{"role":"user","content":"kept"}"#,
        "nonsense",
        r#"{"role":"user","content":7}"#,
        r#"{"role":"robot","content":"what am I"}"#,
        r#"{"role":"assistant","content":"kept too"}"#,
        r#"{"role":"user","content":"cut sho"#,
    ];
    let result = import_transcript(&mut client, "a", ImportFormat::Openai, &lines.join("\n"), 16).expect("imported");
    let (_, messages) = client.get_session("a", "latest");
    let kept: Vec<_> = messages.iter().map(|message| &*message.content).collect();
    assert!(kept.starts_with(&["kept"]) && kept.contains(&"kept too"), "{kept:?}");
    let named: Vec<_> = result.skipped.iter().map(|skipped| skipped.line).collect();
    assert_eq!(named, [2, 3, 4, 6]);
    assert!(result.skipped.iter().all(|skipped| !skipped.reason.is_empty()));
}
