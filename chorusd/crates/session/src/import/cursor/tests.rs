//! Tests of conversations of Cursor.

use chorus_proto::methods::import::ImportFormat::{Auto, Cursor};

use super::super::test_support::{RecordingSink, import_as};

const ID: &str = "724686cd-875e-47da-a90b-dbc3e523efb8";

fn document(bubbles: &[&str]) -> String {
    format!(
        r#"{{"cursor":{{"id":"{ID}","header":{{"workspaceIdentifier":{{"uri":{{"fsPath":"/srv/shop"}}}}}},"name":"The download","createdAt":1787000000000,"modelConfig":{{"modelName":"default"}}}},"bubbles":[{}]}}"#,
        bubbles.join(",")
    )
}

fn read(text: &str) -> RecordingSink {
    let found = import_as(Auto, text).unwrap();
    assert_eq!(found.format, Cursor);
    found
}

#[test]
fn a_conversation_comes_whole() {
    let found = read(&document(&[
        r#"{"type":1,"bubbleId":"b1","text":"Where?","createdAt":"2026-08-17T18:55:40.000Z"}"#,
        r#"{"type":2,"bubbleId":"b2","text":"","thinking":{"text":"hm"}}"#,
        r#"{"type":2,"bubbleId":"b3","text":"","createdAt":"2026-08-17T18:55:41.627Z","modelInfo":{"modelName":"m"},"tokenCount":{"inputTokens":2,"outputTokens":8},"toolFormerData":{"tool":15,"name":"run","toolCallId":"c1","params":"{\"n\":1.10}","rawArgs":"","status":"completed","result":"{\"output\":\"none\\n\",\"exitCode\":1}"}}"#,
        r#"{"type":2,"bubbleId":"b4","text":"","toolFormerData":{"name":"read","toolCallId":"c2","params":"","rawArgs":"{}","status":"error"}}"#,
        r#"{"type":2,"bubbleId":"b5","text":"","toolFormerData":{"name":"edit","toolCallId":"c3","params":"{}","status":"loading"}}"#,
        r#"{"type":2,"bubbleId":"b6","text":"Nowhere.","tokenCount":{"inputTokens":0,"outputTokens":0}}"#,
        r#"{"type":7}"#,
        r#"{"type":2,"bubbleId":"b7","text":"","thinking":{"text":"so"}}"#,
    ]));
    let session = &found.sessions[0];
    let due = [
        "user: Where?",
        "assistant: ",
        "tool_result: none\n",
        "assistant: ",
        "tool_result: ",
        "assistant: ",
        "assistant: Nowhere.",
        "assistant: ",
    ];
    assert_eq!(session.role_texts(), due);
    let [question, call, failed, _, denied, _, end, rest] = &session.messages[..] else { panic!("eight") };
    assert_eq!((question.id.as_str(), question.timestamp.to_string().as_str()), ("b1", "2026-08-17T18:55:40Z"));
    assert_eq!((call.tool_calls[0].name.as_str(), call.tool_calls[0].params.get()), ("run", r#"{"n":1.10}"#));
    assert_eq!(call.usage.as_ref().unwrap().output_tokens, Some(8));
    assert!(
        call.provider.as_ref().unwrap().get().contains("hm") && rest.provider.as_ref().unwrap().get().contains("so")
    );
    assert!(failed.is_error && denied.is_error && end.usage.is_none());
    let about = &session.about;
    assert_eq!((about.conversation.as_deref(), about.id.unwrap().to_string().as_str()), (Some(ID), ID));
    assert_eq!((about.description.as_deref(), about.model.as_deref()), (Some("The download"), Some("m")));
    assert_eq!(about.project.as_deref(), Some("/srv/shop"));
    assert_eq!(found.skipped.iter().map(|(entry, _)| *entry).collect::<Vec<_>>(), [7]);
}
