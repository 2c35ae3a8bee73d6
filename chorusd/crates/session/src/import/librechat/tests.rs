//! Tests of conversations that LibreChat exported.

use chorus_proto::methods::import::ImportFormat::{Auto, Librechat};

use super::super::test_support::{RecordingSink, import_as};

const ID: &str = "0f0f0f0f-0000-4000-8000-000000000001";

const ROOT: &str = "00000000-0000-0000-0000-000000000000";

/// Builds a message that was created in this minute. `rest` is its text or content, and what else it has.
fn message(id: &str, parent: &str, minute: u32, rest: &str) -> String {
    let is_user = id.starts_with('u');
    let model = if is_user { "null" } else { r#""gpt-x""# };
    format!(
        r#"{{"messageId":"{id}","conversationId":"{ID}","parentMessageId":"{parent}","isCreatedByUser":{is_user},"model":{model},"tokenCount":7,"createdAt":"2026-05-01T08:{minute:02}:00.000Z",{rest}}}"#
    )
}

fn export(messages: &str) -> String {
    format!(
        r#"{{"conversationId":"{ID}","endpoint":"openAI","title":"A trip","exportAt":"10:11:12 GMT+0200","branches":true,"options":{{"model":"old"}},{messages}}}"#
    )
}

fn read(text: &str) -> RecordingSink {
    let found = import_as(Auto, text).unwrap();
    assert_eq!(found.format, Librechat);
    found
}

#[test]
fn a_conversation_comes_with_its_calls_and_files() {
    let content = r#""text":"","content":[{"type":"think","think":"warm"},{"type":"text","text":{"value":"Let me see."}},{"type":"tool_call","tool_call":{"id":"c1","name":"weather","args":"{\"n\":1.10}","output":"25C","progress":1}},{"type":"tool_call","tool_call":{"id":"c2","name":"map","args":"oops","progress":0.1}},{"type":"text","text":"Go to Split."},{"type":"image_file","image_file":{"file_id":"f3","filename":"map.png","filepath":"/images/map.png","type":"image/png","bytes":5}}]"#;
    let files = r#""text":"Where?","files":[{"file_id":"f1","filename":"a.txt","type":"text/plain","text":"warm"},{"file_id":"f2","type":"image/png","bytes":9}]"#;
    let messages = [message("u1", ROOT, 0, files), message("a1", "u1", 1, content)];
    let found = read(&export(&format!(r#""recursive":false,"messages":[{}]"#, messages.join(","))));
    let session = &found.sessions[0];
    let due = ["user: Where?", "assistant: Let me see.", "tool_result: 25C", "assistant: Go to Split."];
    assert_eq!(session.role_texts(), due);
    let [question, reply, result, end] = &session.messages[..] else { panic!("four") };
    let names: Vec<_> = question.attachments.iter().map(|file| (file.name.as_str(), file.size)).collect();
    assert_eq!(names, [("a.txt", Some(4)), ("f2", Some(9))]);
    assert_eq!((reply.tool_calls.len(), reply.tool_calls[0].params.get()), (1, r#"{"n":1.10}"#));
    assert_eq!(reply.usage.as_ref().unwrap().output_tokens, Some(7));
    assert!(reply.provider.as_ref().unwrap().get().contains("warm") && question.usage.is_none());
    assert_eq!((result.tool_call_id.as_deref(), result.name.as_deref()), (Some("c1"), Some("weather")));
    assert_eq!(
        (end.tool_calls[0].params.get(), end.attachments[0].url.as_deref()),
        (r#""oops""#, Some("/images/map.png"))
    );
    let about = &session.about;
    assert_eq!((about.conversation.as_deref(), about.id.unwrap().to_string().as_str()), (Some(ID), ID));
    assert_eq!((about.description.as_deref(), about.model.as_deref()), (Some("A trip"), Some("gpt-x")));
    assert_eq!(about.started_at.unwrap().to_string(), "2026-05-01T08:00:00Z");
}

#[test]
fn a_tree_is_the_same_conversation_as_a_list() {
    let said = |id: &str, parent: &str, minute: u32, text: &str, children: &str| {
        message(id, parent, minute, &format!(r#""text":"{text}"{children}"#))
    };
    let flat = [
        said("u1", ROOT, 0, "Where?", ""),
        said("a1", "u1", 1, "Graz.", ""),
        said("a2", "u1", 2, "Split.", ""),
        said("u2", "a2", 3, "Thanks", ""),
    ];
    let flat = read(&export(&format!(r#""messages":[{}]"#, flat.join(","))));
    let children = |of: &[String]| format!(r#","children":[{}]"#, of.join(","));
    let end = said("u2", "a2", 3, "Thanks", &children(&[]));
    let answers = [said("a1", "u1", 1, "Graz.", &children(&[])), said("a2", "u1", 2, "Split.", &children(&[end]))];
    let tree = said("u1", ROOT, 0, "Where?", &children(&answers));
    let tree = read(&export(&format!(r#""recursive":true,"messagesTree":[{tree}]"#)));
    assert_eq!(flat.sessions[0].role_texts(), ["user: Where?", "assistant: Split.", "user: Thanks"]);
    assert_eq!(flat.sessions[0].json, tree.sessions[0].json);
    assert!(flat.sessions[0].messages[0].provider.as_ref().unwrap().get().contains("Graz."));
    assert!(flat.skipped[0].1.starts_with("1 message on other branches") && flat.skipped == tree.skipped);
}

#[test]
fn a_broken_message_does_not_take_the_rest_along() {
    let messages = [message("u1", ROOT, 0, r#""text":"Where?""#), message("a1", "u1", 1, r#""x":1"#), "12".into()];
    let found = read(&export(&format!(r#""messages":[{}]"#, messages.join(","))));
    assert_eq!(found.sessions[0].role_texts(), ["user: Where?"]);
    assert!(found.skipped.iter().any(|(_, reason)| reason.contains("without text")), "{:?}", found.skipped);
    assert!(import_as(Librechat, "{\"messages\":[]}").is_err());
}
