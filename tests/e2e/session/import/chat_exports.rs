//! Exports of chat programs: imported, grown, and known by their programs.

use chorus_tests::Daemon;
use serde_json::{Value, json};

use super::coding_tools::grows;
use crate::home;

const ID: &str = "c0ffee00-0000-4000-8000-000000000001";

fn check_conversation(session: &Value, program: &str, conversation: &str) {
    let source = &session["source"];
    assert_eq!((&source["program"], &source["conversation"]), (&json!(program), &json!(conversation)));
    assert_eq!((&source["revision"], &session["agent_name"]), (&json!(1), &json!(program)), "{source}");
}

#[test]
fn exports_of_claude_ai_grow() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let message = |number: u64, sender: &str, content: Value| {
        json!({"uuid": format!("m{number}"), "parent_message_uuid": format!("m{}", number - 1), "sender": sender,
               "text": "", "content": content, "created_at": format!("2026-04-01T10:0{number}:00.000000Z")})
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let search = json!([
        {"type": "tool_use", "id": "t1", "name": "web_search", "input": {"query": "night"}},
        {"type": "tool_result", "tool_use_id": "t1", "name": "web_search", "content": [text("3 results")]},
        text("At night."),
    ]);
    let first = [message(1, "human", json!([text("When?")])), message(2, "assistant", search)];
    let export = |messages: &[Value]| {
        json!([{"uuid": ID, "name": "A plan", "created_at": "2026-04-01T10:00:00Z", "chat_messages": messages}])
            .to_string()
    };
    let more = [message(3, "human", json!([text("Thanks")]))];
    let (part, whole) = (export(&first), export(&[&first[..], &more[..]].concat()));
    let (session, texts) = grows(&home, "claude-ai", "conversations.json", (&part, &whole));
    assert_eq!(texts, ["user: When?", "assistant: ", "tool_result: 3 results", "assistant: At night.", "user: Thanks"]);
    check_conversation(&session, "claude-ai", ID);
    assert_eq!((&session["id"], &session["description"]), (&json!(ID), &json!("A plan")));
}

#[test]
fn exports_of_librechat_grow() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let message = |number: u64, text: &str| {
        json!({"messageId": format!("m{number}"), "parentMessageId": format!("m{}", number - 1), "isCreatedByUser": number % 2 == 1,
               "text": text, "model": "gpt-x", "createdAt": format!("2026-05-01T08:0{number}:00.000Z")})
    };
    let export = |messages: &[Value]| {
        json!({"conversationId": ID, "title": "A trip", "recursive": false, "messages": messages}).to_string()
    };
    let first = [message(1, "Where?"), message(2, "Split.")];
    let whole = export(&[&first[..], &[message(3, "Thanks")]].concat());
    let (session, texts) = grows(&home, "librechat", "A trip.json", (&export(&first), &whole));
    assert_eq!(texts, ["user: Where?", "assistant: Split.", "user: Thanks"]);
    check_conversation(&session, "librechat", ID);
    assert_eq!((&session["description"], &session["model"]), (&json!("A trip"), &json!("gpt-x")));
}

#[test]
fn exports_of_open_webui_grow() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let message = |number: u64, parent: Value, text: &str| {
        json!({"id": format!("m{number}"), "parentId": parent, "role": if number == 1 || number == 4 { "user" } else { "assistant" },
               "content": text, "model": format!("model-{number}"), "timestamp": 1_777_600_000 + number})
    };
    let export = |messages: &[Value], current: &str| {
        let tree: serde_json::Map<String, Value> =
            messages.iter().map(|one| (one["id"].as_str().unwrap_or_default().to_owned(), one.clone())).collect();
        json!([{"id": ID, "title": "A trip", "chat": {"history": {"messages": tree, "currentId": current}}, "created_at": 1_777_600_000}]).to_string()
    };
    let first =
        [message(1, Value::Null, "Where?"), message(2, json!("m1"), "Graz."), message(3, json!("m1"), "Split.")];
    let whole = export(&[&first[..], &[message(4, json!("m2"), "Thanks")]].concat(), "m4");
    let (session, texts) = grows(&home, "open-webui", "chat-export.json", (&export(&first, "m2"), &whole));
    assert_eq!(texts, ["user: Where?", "assistant: Graz.", "user: Thanks"]);
    check_conversation(&session, "open-webui", ID);
    assert_eq!((&session["description"], &session["model"]), (&json!("A trip"), &json!("model-2")));
}

#[test]
fn activities_of_the_gemini_app_grow() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let record = |minute: u64, prompt: &str| {
        json!({"header": "Gemini Apps", "title": format!("Prompted {prompt}"), "time": format!("2026-03-02T09:{minute}:00.000Z"),
               "products": ["Gemini Apps"], "safeHtmlItem": [{"html": format!("<p>It <b>{prompt}</b>.</p>")}]})
    };
    let part = json!([record(20, "shines"), record(15, "glows")]).to_string();
    let whole = json!([record(40, "fades"), record(20, "shines"), record(15, "glows")]).to_string();
    let (session, texts) = grows(&home, "gemini-apps", "MyActivity.json", (&part, &whole));
    let prompts: Vec<_> = texts.iter().filter(|text| text.starts_with("user")).collect();
    assert_eq!(prompts, ["user: glows", "user: shines", "user: fades"]);
    assert_eq!(texts[1], "assistant: It **glows**.");
    let conversation = session["source"]["conversation"].as_str().unwrap_or_default();
    assert!(conversation.starts_with("2026-03-02T09:15:00Z-"), "{session}");
}
