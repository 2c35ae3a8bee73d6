//! Turns in which a model works on its workspace.

mod changed_settings;
mod daemon_exit;
mod duplicate_ids;
mod faults;
mod limits;
mod message_numbers;
mod order;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::{Client, EventType, Message, Role};
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use serde_json::Value;

use super::send;

/// Sets a key of the agent.
pub fn configure(client: &mut Client, key: &str, value: &str) {
    let params = ConfigParams { name: "a".into(), key: Some(key.into()), value: Some(value.into()) };
    client.call::<Config>(&params).expect("agent.config");
}

/// The results of all calls so far.
pub fn results(client: &mut Client) -> Vec<Message> {
    client.messages("a").into_iter().filter(|message| message.role == Role::ToolResult).collect()
}

/// What was told of calls: `started c0`, `finished c0`.
pub fn told(client: &mut Client) -> Vec<String> {
    let word = |kind| match kind {
        EventType::ToolStarted => Some("started"),
        EventType::ToolFinished => Some("finished"),
        _ => None,
    };
    let one = |event: chorus_proto::Event| Some(format!("{} {}", word(event.kind)?, event.data["id"].as_str()?));
    client.events(0).into_iter().filter_map(one).collect()
}

/// A turn with one answer that calls these, and one that ends it; the results.
pub fn called(fixture: &Fixture, client: &mut Client, calls: &[(&str, Value)]) -> Vec<Message> {
    let before = results(client).len();
    let mut answer = Response::empty();
    for (number, (name, params)) in calls.iter().enumerate() {
        answer = answer.then_call(&format!("c{number}"), name, params);
    }
    fixture.answer(answer);
    fixture.reply("Done.");
    send(client, "Go.").expect("a turn");
    results(client).split_off(before)
}
