//! `context show --window`: what the next call would send is what the model server then receives.

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::context::{Pin, PinParams, Show, ShowParams};
use chorus_proto::{Client, ErrorKind, MendKind, NewMessage, PieceKind, Role, ToolCall, Window};
use chorus_tests::Fixture;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::send::{MODELS, start_fixture, start_with_model};

fn window(client: &mut Client) -> Window {
    let params = ShowParams { agent: Some("a".into()), window: true, ..Default::default() };
    *client.call::<Show>(&params).expect("context.show").window.expect("a window")
}

fn set(client: &mut Client, key: &str, value: &str) {
    let params = ConfigParams { name: "a".into(), key: Some(key.into()), value: Some(value.into()) };
    client.call::<Config>(&params).expect("agent.config");
}

/// Everything that a prompt can have, and messages that no provider would take as they are.
fn fill(fixture: &Fixture) {
    let mut client = fixture.client();
    set(&mut client, "system_prompt", "You are kind.");
    std::fs::write(fixture.home.path.join("agents/a/docs/notes.md"), "The sheep are in the north.").expect("a note");
    client
        .call::<Pin>(&PinParams { conversation: None, agent: Some("a".into()), fact: "the old  column stays".into() })
        .expect("a pin");
    let params = RawValue::from_string(r#"{"path":"a.rs","n":1.50}"#.into()).expect("JSON");
    let call = ToolCall { id: "c1".into(), name: "view".into(), params };
    let said = [
        NewMessage::text(Role::System, "Obey me."),
        NewMessage::text(Role::User, "Look at it. äöü"),
        NewMessage { tool_calls: vec![call], ..NewMessage::text(Role::Assistant, "I look.") },
        NewMessage { tool_call_id: Some("c1".into()), ..NewMessage::text(Role::ToolResult, "fn main() {}") },
        NewMessage::text(Role::Assistant, "It is short."),
    ];
    client.append_all("a", said.to_vec());
}

/// The texts, calls and results of a request, in order.
fn sent(body: &Value) -> Vec<Value> {
    let mut parts = Vec::new();
    for message in body["messages"].as_array().expect("messages") {
        let role = &message["role"];
        match &message["content"] {
            Value::Array(blocks) => parts.extend(blocks.iter().map(|block| match block["type"].as_str() {
                Some("tool_use") => json!({"call": block["id"], "name": block["name"]}),
                Some("tool_result") => json!({"result": block["tool_use_id"], "text": block["content"][0]["text"]}),
                _ => json!({"role": role, "text": block["text"]}),
            })),
            text if role == "tool" => parts.push(json!({"result": message["tool_call_id"], "text": text})),
            text if role != "system" && text != "" => parts.push(json!({"role": role, "text": text})),
            _ => {}
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        parts.extend(calls.map(|call| json!({"call": call["id"], "name": call["function"]["name"]})));
    }
    parts
}

/// The same of a window.
fn shown(window: &Window) -> Vec<Value> {
    let mut parts = Vec::new();
    for message in window.messages.iter().map(|shown| &shown.message) {
        match message.role {
            Role::ToolResult => parts.push(json!({"result": message.tool_call_id, "text": message.content})),
            _ if message.content.is_empty() => {}
            role => parts.push(json!({"role": role, "text": message.content})),
        }
        parts.extend(message.tool_calls.iter().map(|call| json!({"call": call.id, "name": call.name})));
    }
    parts
}

fn check(window: &Window, body: &Value) {
    let system: Vec<_> = window.system.iter().map(|piece| piece.text.clone()).collect();
    match body["system"].as_array() {
        Some(blocks) => assert_eq!(json!(system), blocks.iter().map(|block| block["text"].clone()).collect::<Value>()),
        None => assert_eq!(body["messages"][0]["content"], system.join("\n\n")),
    }
    assert_eq!(shown(window), sent(body));
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let name = |tool: &Value| tool["name"].as_str().or(tool["function"]["name"].as_str()).map(str::to_owned);
    assert_eq!(tools.iter().filter_map(name).collect::<Vec<_>>(), tool_names(window));
    let budget = &window.budget;
    assert_eq!(body["max_tokens"], budget.answer);
    assert_eq!(budget.tokens, budget.system + budget.working_set + budget.messages + budget.tools);
    assert!(budget.working_set + budget.messages <= budget.limit, "{budget:?}");
}

fn tool_names(window: &Window) -> Vec<String> {
    window.tools.iter().map(|tool| tool.name.clone()).collect()
}

#[test]
fn what_is_shown_is_what_is_sent_by_either_wire() {
    for model in MODELS {
        let fixture = start_with_model(model);
        fill(&fixture);
        // How much it takes is asked of the server beside all else.
        let known = || Some(window(&mut fixture.client())).filter(|window| window.budget.takes.is_some());
        let before = wait_until("the size of the window", DEADLINE, known);
        fixture.answer(Response::text(["Half"]).gate("go"));
        let turn = fixture.spawn_send("a", "And now?");
        fixture.models().wait_for_gate("go");
        // The message is in the context, and the call that has it is under way.
        let window = window(&mut fixture.client());
        check(&window, &fixture.models().requests()[0].body);
        let kinds: Vec<_> = window.system.iter().map(|piece| piece.kind).collect();
        assert_eq!(kinds, [PieceKind::Prompt, PieceKind::Docs, PieceKind::WorkingSet]);
        assert_eq!(window.mended[0].how, MendKind::Quoted);
        assert_eq!(window.model.as_deref(), Some(model));
        assert!(window.compacts.is_none() && window.budget.left_out == 0);
        // Before it, all but that message was shown.
        assert_eq!(before.messages.len() + 1, window.messages.len());
        assert_eq!((tool_names(&before), before.system), (tool_names(&window), window.system));
        fixture.models().open_gate("go");
        turn.join().expect("the client").expect("a turn");
    }
}

#[test]
fn a_window_that_is_compacted_first_is_shown_as_rules_leave_it() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    set(&mut client, "compact_at_tokens", "2000");
    let note = |n| NewMessage::text(Role::User, format!("We decided on plan {n:03}. {}", "x".repeat(96)));
    client.append_all("a", (0..140).map(note).collect());
    let due = window(&mut client);
    let receipt = due.compacts.as_ref().expect("a receipt");
    assert_eq!(receipt.left + receipt.kept, 140);
    assert!(due.system.iter().any(|piece| piece.text.contains("We decided on plan 000")));
    assert_eq!(due.budget.left_out, receipt.left);
    assert!(due.budget.working_set + due.budget.messages <= 2000, "{:?}", due.budget);
    // Looking changes nothing.
    assert_eq!(client.messages("a").len(), 140);
    fixture.answer(Response::text(["Noted."]).gate("go"));
    let turn = fixture.spawn_send("a", "Go.");
    fixture.models().wait_for_gate("go");
    let after = window(&mut fixture.client());
    assert!(after.compacts.is_none());
    check(&after, &fixture.models().requests().pop().expect("a request").body);
    fixture.models().open_gate("go");
    turn.join().expect("the client").expect("a turn");
}

#[test]
fn it_is_shown_without_a_context_and_without_a_model_and_goes_with_no_page() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    assert!(window(&mut client).messages.is_empty() && !window(&mut client).tools.is_empty());
    let params = ShowParams { agent: Some("a".into()), window: true, last: Some(1), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Show>(&params)), ErrorKind::InvalidParams);
    fill(&fixture);
    let text = chorusctl(&fixture.home, ["context", "show", "--window"]).expect_success();
    for part in ["next request to anthropic/claude-test", "You are kind.", "The sheep are", "quoted", "view (", "total"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(chorusctl(&fixture.home, ["context", "show", "--window", "--last", "1"]).status, 2);
    let json = chorusctl(&fixture.home, ["--json", "context", "show", "--window"]).expect_json();
    assert_eq!(json["window"]["budget"]["messages"], window(&mut client).budget.messages);
}

#[test]
fn what_alone_is_too_much_is_cut_in_the_window_and_told_and_the_record_is_whole() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    for n in 0..200 {
        let fact = format!("{n} {}", "is a fact that stays. ".repeat(20));
        client.call::<Pin>(&PinParams { conversation: None, agent: Some("a".into()), fact }).expect("a pin");
    }
    let long = "\"A line\" that is said again.\n".repeat(40_000);
    let id = Some("long".to_owned());
    client.append_all("a", vec![NewMessage { id, ..NewMessage::text(Role::User, &long) }]);
    let window = window(&mut client);
    let budget = window.budget;
    assert!(budget.working_set + budget.messages <= budget.limit, "{budget:?}");
    assert!(budget.working_set > budget.limit / 4 && budget.messages > budget.limit / 4, "{budget:?}");
    let shown = &window.messages[0].message.content;
    let [short] = &window.shortened[..] else { panic!("{:?}", window.shortened) };
    assert!(shown.contains(&format!("[… {} bytes omitted", short.bytes)), "{}", shown.len());
    assert_eq!(short.message_id, "long");
    let block = window.system.iter().find(|piece| piece.kind == PieceKind::WorkingSet).expect("a working set");
    assert!(block.text.contains("older items omitted") && block.text.contains("- 199 is a fact"));
    let text = chorusctl(&fixture.home, ["context", "show", "--window"]).expect_success();
    assert!(text.contains("truncated by 1.0 MiB"), "{text}");
    assert_eq!(client.message_texts("a"), [long]);
    assert_eq!(client.pinned_facts("a").len(), 200);
}
