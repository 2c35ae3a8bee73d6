//! Tests of conversations of Cursor. The shapes are those that public readers of its files describe.

use chorus_proto::methods::import::ImportFormat::{Auto, Cursor};

use super::super::test_support::{RecordingSink, import_as, now};

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

const PROMPT: &str = r#"{"role":"user","message":{"content":[{"type":"text","text":"<timestamp>Tuesday, Sep 8, 2026, 3:04 PM (UTC-7)</timestamp>\n<user_query>\nfix the <b>loop</b>\n</user_query>"}]}}"#;

#[test]
fn a_transcript_of_the_agent_comes_with_calls_and_times() {
    let lines = [
        PROMPT,
        r#"{"role":"assistant","message":{"content":[{"type":"text","text":"I'll look.\n\n[REDACTED]"},{"type":"tool_use","name":"Read","input":{"n": 1.10}},{"type":"tool_use","id":"c9","name":"Shell","input":{}}]}}"#,
        r#"{"role":"user","message":{"content":[{"type":"tool_result","content":"1"},{"type":"tool_result","tool_use_id":"c9","is_error":true,"content":[{"type":"text","text":"2"}]},{"type":"text","text":"go on"}]}}"#,
        r#"{"role":"assistant","message":{"content":[{"type":"text","text":"[REDACTED]"},{"type":"redacted"}]}}"#,
        r#"{"type":"turn_ended","status":"success"}"#,
        r#"{"role":"user","message":{"content":"<timestamp>Wednesday, Sep 9, 2026, 12:30 AM (UTC+5:30)</timestamp>\nthanks"}}"#,
        r#"{"role":"assistant","message":{"content":[{"type":"text","text":"Fixed."},{"type":"command_output","output":"ok"}]}}"#,
        r#"{"role":"judge","message":{"content":"no"}}"#,
        r#"{"role":"user","message":{"cont"#,
    ]
    .join("\n");
    let found = read(&lines);
    let [session] = &found.sessions[..] else { panic!("{:?}", found.sessions) };
    let due = [
        "user: fix the <b>loop</b>",
        "assistant: I'll look.",
        "tool_result: 1",
        "tool_result: 2",
        "user: go on",
        "user: thanks",
        "assistant: Fixed.",
    ];
    assert_eq!(session.role_texts(), due);
    let [prompt, reply, one, two, _, thanks, fixed] = &session.messages[..] else { panic!("seven") };
    let calls: Vec<_> = reply.tool_calls.iter().map(|call| (&*call.name, &*call.id, call.params.get())).collect();
    assert_eq!(calls, [("Read", "call_2_1", r#"{"n": 1.10}"#), ("Shell", "c9", "{}")]);
    assert_eq!((one.tool_call_id.as_deref(), one.name.as_deref()), (Some("call_2_1"), Some("Read")));
    assert_eq!((two.tool_call_id.as_deref(), two.is_error), (Some("c9"), true));
    assert!(fixed.provider.as_ref().unwrap().get().contains(r#"{"cursor":{"command_output":[{"type""#));
    let at = |day: &str| day.parse().unwrap();
    assert_eq!([prompt.timestamp, two.timestamp], [at("2026-09-08T22:04:00Z"); 2]);
    assert_eq!([thanks.timestamp, fixed.timestamp], [at("2026-09-08T19:00:00Z"); 2]);
    assert_eq!(session.about.started_at, Some(prompt.timestamp));
    assert_eq!(found.skipped.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [8, 9]);
    // A message keeps its id when the transcript is read again.
    let ids = |found: &RecordingSink| -> Vec<String> {
        found.sessions[0].messages.iter().map(|message| message.id.clone()).collect()
    };
    let again = ids(&read(&lines));
    assert_eq!(ids(&found), again);
    assert_eq!(again.iter().collect::<std::collections::HashSet<_>>().len(), due.len());
}

#[test]
fn a_prompt_is_what_the_user_wrote() {
    let said = |text: &str| {
        let content = serde_json::json!([{"type": "text", "text": text}, {"type": "text", "text": "x"}]);
        let line = serde_json::json!({"role": "user", "message": {"content": content}}).to_string();
        read(&line).sessions[0].messages[0].content.clone()
    };
    let time = "<timestamp>Tuesday, Sep 8, 2026, 3:04 PM (UTC)</timestamp>";
    for (text, due) in [
        (format!("<user_info>\nOS\n</user_info>\n{time}\n<user_query>\n a\nb </user_query>\n<rules/>"), "a\nb\n\nx"),
        ("<user_query>a </user_query> b</user_query>".to_owned(), "a </user_query> b\n\nx"),
        (format!("{time}\n"), "x"),
        ("<user_query> </user_query>".to_owned(), "x"),
        ("What is <timestamp>now</timestamp>?".to_owned(), "What is <timestamp>now</timestamp>?\n\nx"),
        ("a <user_query> without an end".to_owned(), "a <user_query> without an end\n\nx"),
    ] {
        assert_eq!(said(&text), due);
    }
}

#[test]
fn times_have_any_zone() {
    let at = |zone: &str| {
        let line = PROMPT.replace("UTC-7", zone);
        read(&line).sessions[0].messages[0].timestamp
    };
    for (zone, due) in [("UTC", "15:04"), ("UTC+5:30", "09:34"), ("UTC-3:30", "18:34"), ("UTC+2", "13:04")] {
        assert_eq!(at(zone), format!("2026-09-08T{due}:00Z").parse().unwrap(), "{zone}");
    }
    for wrong in ["yesterday", "UTC+", "UTC+99", "UTC+9999999999", "UTC-1:9999999999"] {
        assert_eq!(at(wrong), now(), "{wrong}");
    }
}

#[test]
fn a_transcript_may_begin_with_a_broken_line() {
    for start in ["{\"role\":\"us\n", "\n\n", "[1]\n"] {
        assert_eq!(
            read(&format!("{start}{PROMPT}")).sessions[0].role_texts(),
            ["user: fix the <b>loop</b>"],
            "{start}"
        );
    }
}
