//! Several conversations of one agent at work in its workspace.

mod commands;
mod files;
mod git;
mod turns;

use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::methods::conversations::{New, NewParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::{Client, Role};
use chorus_tests::Fixture;
use chorus_tests::model_server::Response;
use serde_json::{Value, json};

use super::self_edit::ToolOutput;
use crate::home;

/// Starts a daemon with a model, and the agent `a` with these conversations beside `main`.
fn start_fixture(conversations: &[&str]) -> Fixture {
    let fixture = Fixture::builder(home()).models().start();
    fixture.create_agent("a", Some("open"));
    for name in conversations {
        create_conversation(&fixture, name);
    }
    fixture
}

fn create_conversation(fixture: &Fixture, name: &str) {
    let params = NewParams { agent: Some("a".into()), name: name.into(), ..Default::default() };
    fixture.client().call::<New>(&params).expect("a conversation");
}

fn send_params(conversation: &str) -> SendParams {
    let conversation = Some(conversation.to_owned());
    SendParams { agent: Some("a".into()), conversation, text: "Go.".into(), ..Default::default() }
}

/// The results of tool calls in the context of a conversation.
fn results(client: &mut Client, conversation: &str) -> Vec<ToolOutput> {
    let params = ShowParams { agent: Some("a".into()), conversation: Some(conversation.into()), ..Default::default() };
    let messages = client.call::<Show>(&params).expect("context.show").messages.into_iter();
    let results = messages.filter(|message| message.role == Role::ToolResult);
    results.map(|message| ToolOutput { text: message.content, is_error: message.is_error }).collect()
}

/// A turn of a conversation in which its model makes one call.
fn call_tool(fixture: &Fixture, conversation: &str, tool: &str, params: Value) -> ToolOutput {
    fixture.answer(Response::tool_call("c1", tool, &params));
    fixture.reply("Done.");
    let mut client = fixture.client();
    client.call::<Send>(&send_params(conversation)).expect("a turn");
    results(&mut client, conversation).pop().expect("a result")
}

/// A call that must succeed.
#[track_caller]
fn expect_tool(fixture: &Fixture, conversation: &str, tool: &str, params: Value) -> String {
    let came = call_tool(fixture, conversation, tool, params);
    assert!(!came.is_error, "{conversation} {tool}: {}", came.text);
    came.text
}

/// A call that must be refused because of what another conversation did.
#[track_caller]
fn expect_refusal(fixture: &Fixture, conversation: &str, tool: &str, params: Value, other: &str) {
    let came = call_tool(fixture, conversation, tool, params);
    assert_eq!((came.text, came.is_error), (format!("edited meanwhile by {other}: read it again"), true));
}

fn create(content: &str) -> Value {
    json!({"path": "f", "content": content})
}

fn view() -> Value {
    json!({"path": "./f"})
}

fn replace(old: &str, new: &str) -> Value {
    json!({"path": "f", "old_str": old, "new_str": new})
}

fn text(fixture: &Fixture, name: &str) -> String {
    std::fs::read_to_string(fixture.workspace("a").join(name)).expect("a file")
}
