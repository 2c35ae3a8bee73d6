//! Turns in which a model works on its workspace.

mod change;
mod ends;
mod faults;
mod files;
mod limits;
mod order;
mod same_ids;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::{Client, Message, Role};
use chorus_tests::chat::Chat as _;
use chorus_tests::model_server::Answer;
use serde_json::Value;

use super::{Rig, send};

/// Sets a key of the agent.
fn configure(client: &mut Client, key: &str, value: &str) {
    let params = ConfigParams { name: "a".into(), key: Some(key.into()), value: Some(value.into()) };
    client.call::<Config>(&params).expect("agent.config");
}

/// The results of all calls so far.
fn results(client: &mut Client) -> Vec<Message> {
    client.shown("a").into_iter().filter(|message| message.role == Role::ToolResult).collect()
}

/// A turn with one answer that calls these, and one that ends it; the results.
fn called(rig: &Rig, client: &mut Client, calls: &[(&str, Value)]) -> Vec<Message> {
    let before = results(client).len();
    let mut answer = Answer::empty();
    for (number, (name, params)) in calls.iter().enumerate() {
        answer = answer.call(&format!("c{number}"), name, params);
    }
    rig.answer(answer);
    rig.say("Done.");
    send(client, "Go.").expect("a turn");
    results(client).split_off(before)
}
