//! Tests of chats that Open WebUI exported.

use chorus_proto::methods::import::ImportFormat::{Auto, OpenWebui};

use super::super::test_support::{RecordingSink, import_as};

const ID: &str = "7c6f0038-580a-4988-93a2-389d5a046556";

/// Builds a message of this second with its key. `rest` is what else it has.
fn message(id: &str, parent: &str, role: &str, second: u64, rest: &str) -> String {
    let parent = if parent.is_empty() { "null".into() } else { format!("\"{parent}\"") };
    format!(
        r#""{id}":{{"id":"{id}","parentId":{parent},"childrenIds":[],"role":"{role}","timestamp":{},{rest}}}"#,
        1_777_600_000 + second
    )
}

fn chat(messages: &[String], current: &str) -> String {
    format!(
        r#"{{"id":"{ID}","user_id":"u","title":"A trip","chat":{{"id":"","title":"A trip","models":["m1","m2"],"history":{{"messages":{{{}}},"currentId":"{current}"}},"messages":[],"timestamp":1777600000000}},"updated_at":1777600100,"created_at":1777600000,"meta":{{"tags":[]}}}}"#,
        messages.join(",")
    )
}

fn read(text: &str) -> RecordingSink {
    let found = import_as(Auto, text).unwrap();
    assert_eq!(found.format, OpenWebui);
    found
}

#[test]
fn the_shown_answer_counts_and_the_others_are_kept() {
    let messages = [
        message("u1", "", "user", 0, r#""content":"Where?","models":["m1","m2"]"#),
        message(
            "a1",
            "u1",
            "assistant",
            1,
            r#""content":"Graz.","model":"m1","usage":{"prompt_tokens":12,"completion_tokens":8}"#,
        ),
        message("a2", "u1", "assistant", 2, r#""content":"Split.","model":"m2""#),
    ];
    let found = read(&format!("[{}]", chat(&messages, "a1")));
    let session = &found.sessions[0];
    assert_eq!(session.role_texts(), ["user: Where?", "assistant: Graz."]);
    let usage = session.messages[1].usage.as_ref().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(12), Some(8)));
    assert!(session.messages[0].provider.as_ref().unwrap().get().contains("Split."));
    let about = &session.about;
    assert_eq!((about.conversation.as_deref(), about.id.unwrap().to_string().as_str()), (Some(ID), ID));
    assert_eq!((about.description.as_deref(), about.model.as_deref()), (Some("A trip"), Some("m1")));
    assert_eq!(about.started_at, Some(session.messages[0].timestamp));
    assert!(found.skipped[0].1.starts_with("1 message on other branches"), "{:?}", found.skipped);
    let found = read(&chat(&messages, "gone"));
    assert_eq!(found.sessions[0].role_texts(), ["user: Where?", "assistant: Split."]);
}

#[test]
fn reasoning_and_calls_in_the_text_come_apart() {
    let content = r#""content":"<details type=\"reasoning\" done=\"true\" duration=\"3\">\n<summary>Thought for 3 seconds</summary>\n> warm &lt;\n> place\n</details>\nLet me see.\n<details type=\"tool_calls\" done=\"true\" id=\"c1\" name=\"weather\" arguments=\"&quot;{\\&quot;n\\&quot;: 1.10}&quot;\" result=\"&quot;25 &amp;deg;C&quot;\">\n<summary>Tool Executed</summary>\n</details>\nGo to Split.\n<details type=\"reasoning\" cut""#;
    let messages = [
        message("u1", "", "user", 0, r#""content":"Where <details type=\"x\">a</details>?""#),
        message("a1", "u1", "assistant", 1, content),
    ];
    let found = read(&chat(&messages, "a1"));
    let session = &found.sessions[0];
    let due = [
        "user: Where <details type=\"x\">a</details>?",
        "assistant: Let me see.",
        "tool_result: 25 &deg;C",
        "assistant: Go to Split.\n<details type=\"reasoning\" cut",
    ];
    assert_eq!(session.role_texts(), due);
    let [_, reply, result, _] = &session.messages[..] else { panic!("four") };
    assert_eq!((reply.tool_calls[0].name.as_str(), reply.tool_calls[0].params.get()), ("weather", r#"{"n": 1.10}"#));
    assert_eq!((result.tool_call_id.as_deref(), result.name.as_deref()), (Some("c1"), Some("weather")));
    assert!(reply.provider.as_ref().unwrap().get().contains("place"));
}

#[test]
fn files_are_attachments() {
    let files = r#""content":[{"type":"text","text":"See"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}],"files":[{"type":"image","url":"data:image/png;base64,aGk="},{"type":"file","name":"a.txt","file":{"data":{"content":"warm"}}},{"type":"file","name":"b.pdf","url":"/api/v1/files/2"}]"#;
    let found = read(&chat(&[message("u1", "", "user", 0, files)], "u1"));
    let message = &found.sessions[0].messages[0];
    let names: Vec<_> = message.attachments.iter().map(|file| (file.name.as_str(), file.data.is_some())).collect();
    assert_eq!(names, [("image-1.png", true), ("a.txt", true), ("b.pdf", false), ("image-4.png", true)]);
    assert_eq!(message.content, "See");
}

#[test]
fn old_chats_have_a_list_of_messages() {
    let old = r#"{"id":"1","title":"New Chat","timestamp":1699000000,"chat":{"models":["llama2"],"messages":[{"role":"user","content":"Where?"},{"role":"oracle","content":"Hm"},{"role":"assistant","content":"Graz."}]}}"#;
    let found = read(&format!("[{{\"chat\":7}},{old}]"));
    let session = &found.sessions[0];
    assert_eq!(session.role_texts(), ["user: Where?", "assistant: Graz."]);
    assert_eq!(session.messages[0].timestamp.to_string(), "2023-11-03T08:26:40Z");
    assert_eq!((session.about.description.as_deref(), session.about.model.as_deref()), (None, Some("llama2")));
    assert_eq!(found.skipped.iter().map(|(entry, _)| *entry).collect::<Vec<_>>(), [1, 2]);
}
