//! Tests of the export of claude.ai.

use chorus_proto::methods::import::ImportFormat::{Auto, ClaudeAi};

use super::super::test_support::{RecordingSink, import_as};

const ID: &str = "c0ffee00-0000-4000-8000-000000000001";

const ROOT: &str = "00000000-0000-4000-8000-000000000000";

/// Builds a message that was created in this minute.
fn message(id: &str, parent: &str, sender: &str, minute: u32, content: &str) -> String {
    let parent = if parent.is_empty() { String::new() } else { format!(r#","parent_message_uuid":"{parent}""#) };
    format!(
        r#"{{"uuid":"{id}","text":"flat","content":[{content}],"sender":"{sender}","created_at":"2026-04-01T10:{minute:02}:00.250000Z","attachments":[],"files":[]{parent}}}"#
    )
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}","citations":[]}}"#)
}

fn conversation(messages: &[String]) -> String {
    format!(
        r#"{{"uuid":"{ID}","name":"A plan","summary":"","created_at":"2026-04-01T10:00:00.000000Z","updated_at":"2026-04-01T10:05:00.000000Z","account":{{"uuid":"a"}},"chat_messages":[{}]}}"#,
        messages.join(",")
    )
}

fn read(text: &str) -> RecordingSink {
    let found = import_as(Auto, text).unwrap();
    assert_eq!(found.format, ClaudeAi);
    found
}

#[test]
fn a_conversation_comes_with_its_calls_and_files() {
    let reply = [
        r#"{"type":"thinking","thinking":"hm","summaries":[]}"#.into(),
        text("Let me look."),
        r#"{"type":"tool_use","id":"t1","name":"web_search","input":{"n":1.10}}"#.into(),
        r#"{"type":"tool_use","name":"repl","input":{}}"#.into(),
        r#"{"type":"tool_result","tool_use_id":"t1","name":"web_search","content":[{"type":"knowledge","title":"Night","url":"https://a/b","text":"runs"},{"type":"text","text":"more"}]}"#.into(),
        r#"{"type":"tool_result","name":"repl","content":"bad","is_error":true}"#.into(),
        text("Only at night."),
        r#"{"type":"token_budget","remaining":5}"#.into(),
    ];
    let question = message("m1", ROOT, "human", 0, &text("When?"))
        .replace(r#""attachments":[]"#, r#""attachments":[{"file_name":"notes.txt","file_size":9,"file_type":"txt","extracted_content":"nightly?\n"},{"file_name":"b.bin","file_size":3}]"#)
        .replace(r#""files":[]"#, r#""files":[{"file_name":"x.png","file_uuid":"f1"},{"file_name":"notes.txt","file_uuid":"f2"}]"#);
    let found =
        read(&format!("[{}]", conversation(&[question, message("m2", "m1", "assistant", 1, &reply.join(","))])));
    let session = &found.sessions[0];
    let due = [
        "user: When?",
        "assistant: Let me look.",
        "tool_result: Night\nhttps://a/b\nruns\n\nmore",
        "tool_result: bad",
        "assistant: Only at night.",
    ];
    assert_eq!(session.role_texts(), due);
    let [question, reply, searched, failed, end] = &session.messages[..] else { panic!("five") };
    let names: Vec<_> = question.attachments.iter().map(|file| (file.name.as_str(), file.size)).collect();
    assert_eq!(names, [("notes.txt", Some(9)), ("b.bin", Some(3)), ("x.png", None)]);
    assert_eq!(question.attachments[0].data.as_deref(), Some("bmlnaHRseT8K"));
    assert_eq!((question.id.as_str(), question.timestamp.to_string().as_str()), ("m1", "2026-04-01T10:00:00.25Z"));
    assert_eq!((reply.tool_calls[0].params.get(), reply.tool_calls[1].id.as_str()), (r#"{"n":1.10}"#, "m2/2"));
    assert!(reply.provider.as_ref().unwrap().get().contains("hm"));
    assert_eq!((searched.name.as_deref(), searched.is_error), (Some("web_search"), false));
    assert_eq!((failed.tool_call_id.as_deref(), failed.is_error), (Some("m2/2"), true));
    assert_ne!(end.id, reply.id);
    let about = &session.about;
    assert_eq!((about.conversation.as_deref(), about.id.unwrap().to_string().as_str()), (Some(ID), ID));
    assert_eq!((about.description.as_deref(), &about.model), (Some("A plan"), &None));
    assert!(found.skipped.is_empty(), "{:?}", found.skipped);
}

#[test]
fn the_newest_answer_counts_and_the_others_are_kept() {
    let messages = [
        message("m1", ROOT, "human", 0, &text("When?")),
        message("m2", "m1", "assistant", 1, &text("Never.")),
        message("m3", "m1", "assistant", 2, &text("At night.")),
        message("m4", "m3", "human", 3, &text("Thanks")),
    ];
    let found = read(&conversation(&messages));
    assert_eq!(found.sessions[0].role_texts(), ["user: When?", "assistant: At night.", "user: Thanks"]);
    assert!(found.sessions[0].messages[0].provider.as_ref().unwrap().get().contains("Never."));
    assert!(found.skipped[0].1.starts_with("1 message on other branches"), "{:?}", found.skipped);
    // What a browser saves says which message is shown, and names the model.
    let shown = conversation(&messages).replacen('{', r#"{"current_leaf_message_uuid":"m2","model":"claude-x","#, 1);
    let found = read(&shown);
    assert_eq!(found.sessions[0].role_texts(), ["user: When?", "assistant: Never."]);
    assert_eq!(found.sessions[0].about.model.as_deref(), Some("claude-x"));
}

#[test]
fn old_exports_have_a_list_of_texts() {
    let old = |id: &str, sender: &str, text: &str| {
        format!(r#"{{"uuid":"{id}","text":"{text}","sender":"{sender}","created_at":"2023-09-01T10:00:00.000000Z"}}"#)
    };
    let messages = [old("o1", "human", "When?"), old("o2", "assistant", "At night."), old("o3", "human", "Why?")];
    let found = read(&format!("[{}]", conversation(&messages).replace("A plan", "")));
    assert_eq!(found.sessions[0].role_texts(), ["user: When?", "assistant: At night.", "user: Why?"]);
    assert_eq!(found.sessions[0].about.description, None);
}

#[test]
fn what_cannot_be_read_does_not_take_the_rest_along() {
    let messages = [
        message("m1", "", "human", 0, &text("When?")),
        message("m2", "", "oracle", 1, &text("Hm")),
        "12".into(),
        message("m3", "", "assistant", 2, &text("At night.")),
    ];
    let found = read(&format!(r#"[{{"chat_messages":[]}},12,{},{{"name":"x"}},"#, conversation(&messages)));
    assert_eq!(found.sessions[0].role_texts(), ["user: When?", "assistant: At night."]);
    assert_eq!(found.skipped.iter().map(|(entry, _)| *entry).collect::<Vec<_>>(), [2, 3, 3, 4, 5]);
    assert!(import_as(ClaudeAi, "[{\"name\":\"x\"}]").is_err());
}
