//! What is sent to providers.

use chorus_llm::{ModelRequest, ToolSpec};
use chorus_proto::{Attachment, Message, NewMessage, Role, ToolCall};
use chorus_tests::model_server::{API_KEY, Response};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{BOTH, CLAUDE, ModelServerFixture, SMALL, message, user};

/// How the base64 of an image begins.
const PNG: &str = "iVBORw0KGgo=";

fn call(id: &str, name: &str, params: &str) -> ToolCall {
    let params = RawValue::from_string(params.into()).expect("JSON");
    ToolCall { id: id.into(), name: name.into(), params }
}

fn assistant(text: &str, calls: Vec<ToolCall>) -> Message {
    Message { tool_calls: calls, ..message(NewMessage::text(Role::Assistant, text)) }
}

fn result(id: &str, text: &str, is_error: bool) -> Message {
    Message { tool_call_id: Some(id.into()), is_error, ..message(NewMessage::text(Role::ToolResult, text)) }
}

fn attachment(media_type: &str, data: Option<&str>, url: Option<&str>, path: Option<&str>) -> Attachment {
    Attachment {
        name: "a.bin".into(),
        media_type: Some(media_type.into()),
        size: Some(3),
        path: path.map(str::to_owned),
        url: url.map(str::to_owned),
        data: data.map(str::to_owned),
    }
}

/// A conversation with everything in it.
fn conversation() -> ModelRequest {
    let params = "{\"n\":1.50,\"big\":123456789012345678901234567890}";
    let question = Message {
        attachments: vec![
            attachment("image/png", Some(PNG), None, None),
            attachment("image/jpeg", None, Some("https://example.org/a.jpg"), None),
            attachment("image/png", None, None, Some("/etc/passwd")),
            attachment("text/plain", Some("AAAA"), None, None),
        ],
        ..user("What is this?")
    };
    ModelRequest {
        output_format: None,
        messages: vec![
            user("Hello."),
            question,
            assistant("I look.", vec![call("c1", "view", params), call("c2", "view", "\"{oops\"")]),
            result("c1", "a cat", false),
            result("c2", "bad parameters", true),
            user("Well?"),
        ],
        system: vec!["You are kind.".into(), "Notes.".into(), "The time is now.".into()],
        stable_system_pieces: 2,
        cache_messages: true,
        tools: vec![
            ToolSpec { name: "view".into(), description: "Looks.".into(), parameters: json!({"type": "object"}) }
                .into(),
            ToolSpec { name: "list_models".into(), description: "Lists.".into(), parameters: Value::Null }.into(),
        ],
        forbid_tool_calls: false,
        max_tokens: 1234,
    }
}

fn sent(
    fixture: &ModelServerFixture,
    model: &str,
    request: &ModelRequest,
) -> chorus_tests::model_server::RecordedRequest {
    for script in [fixture.server.anthropic(), fixture.server.openai()] {
        script.set_fallback(Response::text(["ok"]));
    }
    fixture.call(model, request).reply();
    fixture.server.requests().pop().expect("a request")
}

#[test]
fn a_conversation_as_the_messages_api_takes_it() {
    let fixture = ModelServerFixture::new();
    let sent = sent(&fixture, CLAUDE, &conversation());
    assert_eq!((sent.header("x-api-key"), sent.header("anthropic-version")), (Some(API_KEY), Some("2023-06-01")));
    assert_eq!(sent.header("authorization"), None);
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        sent.body["system"],
        json!([
            {"type": "text", "text": "You are kind."},
            {"type": "text", "text": "Notes.", "cache_control": mark},
            {"type": "text", "text": "The time is now."},
        ])
    );
    assert_eq!(
        sent.body["tools"],
        json!([
            {"name": "view", "description": "Looks.", "input_schema": {"type": "object"}},
            {"name": "list_models", "description": "Lists.", "input_schema": {"type": "object"}, "cache_control": mark},
        ])
    );
    let body = &sent.body;
    assert_eq!(
        (&body["model"], &body["max_tokens"], &body["stream"]),
        (&json!("claude-test"), &json!(1234), &json!(true))
    );
    assert!(sent.text.contains("\"input\":{\"n\":1.50,\"big\":123456789012345678901234567890}"), "{}", sent.text);
    let messages = body["messages"].as_array().expect("messages");
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect();
    assert_eq!(roles, ["user", "assistant", "user"], "one role after the other");
    assert_eq!(
        messages[0]["content"],
        json!([
            {"type": "text", "text": "Hello."},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.jpg"}},
            {"type": "text", "text": "[attached: a.bin, image/png, 3 bytes]"},
            {"type": "text", "text": "[attached: a.bin, text/plain, 3 bytes]"},
            {"type": "text", "text": "What is this?", "cache_control": mark},
        ])
    );
    assert_eq!(
        messages[1]["content"][2],
        json!({"type": "tool_use", "id": "c2", "name": "view", "input": {"invalid": "{oops"}})
    );
    assert_eq!(
        messages[2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a cat"}]},
            {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "bad parameters"}], "is_error": true},
            {"type": "text", "text": "Well?", "cache_control": mark},
        ])
    );
    assert!(!sent.text.contains("passwd"), "a path is not told");
}

#[test]
fn a_conversation_as_chat_completions_take_it() {
    let fixture = ModelServerFixture::new();
    let sent = sent(&fixture, SMALL, &conversation());
    assert_eq!((sent.header("authorization"), sent.header("x-api-key")), (None, None), "this server wants no key");
    let body = &sent.body;
    assert_eq!((&body["model"], &body["max_tokens"]), (&json!("small"), &json!(1234)));
    assert_eq!((&body["stream"], &body["stream_options"]), (&json!(true), &json!({"include_usage": true})));
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "You are kind.\n\nNotes.\n\nThe time is now."},
            {"role": "user", "content": "Hello."},
            {"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.jpg"}},
                {"type": "text", "text": "[attached: a.bin, image/png, 3 bytes]"},
                {"type": "text", "text": "[attached: a.bin, text/plain, 3 bytes]"},
                {"type": "text", "text": "What is this?"},
            ]},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                {"id": "c1", "type": "function",
                 "function": {"name": "view", "arguments": "{\"n\":1.50,\"big\":123456789012345678901234567890}"}},
                {"id": "c2", "type": "function", "function": {"name": "view", "arguments": "{\"invalid\":\"{oops\"}"}},
            ]},
            {"role": "tool", "content": "a cat", "tool_call_id": "c1"},
            {"role": "tool", "content": "error: bad parameters", "tool_call_id": "c2"},
            {"role": "user", "content": "Well?"},
        ])
    );
    assert_eq!(
        body["tools"][1],
        json!({
            "type": "function",
            "function": {"name": "list_models", "description": "Lists.", "parameters": {"type": "object"}},
        })
    );
}

#[test]
fn thinking_goes_back_to_its_own_provider_as_it_came_and_to_no_other() {
    let fixture = ModelServerFixture::new();
    let answer = Response::empty().thinking("Let me see.", "c2lnbmVk").then_call("c1", "view", &json!({}));
    let mut echoes = Vec::new();
    for (model, script) in [(CLAUDE, fixture.server.anthropic()), (SMALL, fixture.server.openai())] {
        script.queue(answer.clone());
        let reply = fixture.ask(model).reply();
        let said = Message { provider: reply.provider, ..assistant("", reply.tool_calls) };
        let messages = vec![user("Hello?"), said, result("c1", "ok", false)];
        echoes.push(ModelRequest { messages, max_tokens: 10, ..ModelRequest::default() });
    }
    let block = json!({"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"});
    let to_claude = sent(&fixture, CLAUDE, &echoes[0]);
    assert_eq!(to_claude.body["messages"][1]["content"][0], block);
    let to_small = sent(&fixture, SMALL, &echoes[1]);
    assert_eq!(to_small.body["messages"][1]["reasoning_content"], "Let me see.");
    assert!(!sent(&fixture, SMALL, &echoes[0]).text.contains("Let me see."));
    assert!(!sent(&fixture, CLAUDE, &echoes[1]).text.contains("Let me see."));
    // Of the same kind, but another provider: a signature is worth nothing there.
    let mut foreign = echoes.remove(0);
    let kept = foreign.messages[1]
        .provider
        .as_ref()
        .expect("blocks")
        .get()
        .replace("\"anthropic\",\"blocks\"", "\"other\",\"blocks\"");
    foreign.messages[1].provider = Some(RawValue::from_string(kept).expect("JSON"));
    assert!(!sent(&fixture, CLAUDE, &foreign).text.contains("Let me see."));
}

/// An answer that was cut while the model thought: the API takes none that ends with thinking.
#[test]
fn an_answer_that_is_nothing_but_thinking_is_not_sent_back() {
    let fixture = ModelServerFixture::new();
    fixture.server.anthropic().queue(Response::empty().thinking("Let me see.", "c2lnbmVk").stop_reason("max_tokens"));
    let reply = fixture.ask(CLAUDE).reply();
    assert!(reply.provider.is_some());
    let thought = Message { provider: reply.provider, ..assistant("", Vec::new()) };
    let request = ModelRequest {
        messages: vec![user("Hello?"), thought, user("And?")],
        max_tokens: 10,
        ..ModelRequest::default()
    };
    let body = sent(&fixture, CLAUDE, &request).body;
    let texts = [json!({"type": "text", "text": "Hello?"}), json!({"type": "text", "text": "And?"})];
    assert_eq!(body["messages"], json!([{"role": "user", "content": texts}]));
}

#[test]
fn empty_things_are_left_out() {
    let fixture = ModelServerFixture::new();
    let request = ModelRequest {
        messages: vec![user("Go."), assistant("", vec![call("c1", "view", "{}")]), result("c1", "", false)],
        system: vec![String::new()],
        stable_system_pieces: 1,
        max_tokens: 10,
        ..ModelRequest::default()
    };
    for model in BOTH {
        let body = sent(&fixture, model, &request).body;
        assert!(body.get("tools").is_none() && body.get("system").is_none(), "{model}");
    }
    let body = sent(&fixture, CLAUDE, &request).body;
    assert_eq!(body["messages"][1]["content"].as_array().map(Vec::len), Some(1));
    assert_eq!(body["messages"][2]["content"][0], json!({"type": "tool_result", "tool_use_id": "c1"}));
}

#[test]
fn a_key_is_read_anew_and_one_that_cannot_be_sent_is_not() {
    let fixture = ModelServerFixture::new();
    fixture.server.anthropic().set_fallback(Response::text(["ok"]));
    fixture.ask(CLAUDE).reply();
    std::fs::write(fixture.server.key_file(), "sk-rotated").expect("a new key");
    fixture.ask(CLAUDE).reply();
    assert_eq!(fixture.server.requests()[1].header("x-api-key"), Some("sk-rotated"));
    for bad in ["sk-secret\nsecond", "sk-secr\u{e9}t", "sk secret", ""] {
        std::fs::write(fixture.server.key_file(), bad).expect("a bad key");
        let error = fixture.ask(CLAUDE).error();
        assert_eq!(error.class, chorus_llm::ErrorClass::Auth);
        let said = format!("{error:?}");
        assert!(said.contains("the API key of anthropic") && !said.contains("sk"), "{said}");
    }
    std::fs::remove_file(fixture.server.key_file()).expect("no key");
    assert!(fixture.ask(CLAUDE).error().hint.is_some());
    assert_eq!(fixture.server.requests().len(), 2, "nothing was sent without a key");
}
