//! Turns: a message, what the model says, the tools it calls; through the socket, against a scripted model server that
//! speaks either wire format.

pub mod cli;
mod conversation;
pub mod crash;
mod errors;
mod full_disk;
mod images;
mod keys;
mod model_override;
mod output_limit;
mod prompt_caching;
mod queue;
mod small_models;
mod stop;
mod text_files;
pub mod tool_calls;

use chorus_proto::methods::events::{Subscribe, SubscribeParams};
use chorus_proto::methods::send::{Cancel, CancelParams, Send, SendParams, SendResult};
use chorus_proto::{CallError, Client, Event, EventType, Message, Role};
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::ModelServer;

use crate::home;

/// The model of each wire format.
pub const MODELS: [&str; 2] = ["anthropic/claude-test", "local/small"];

/// Starts a daemon with a model, and the agent `a`.
pub fn start_fixture() -> Fixture {
    start_with_model(MODELS[0])
}

pub fn start_with_model(model: &str) -> Fixture {
    start_with_keys(model, "")
}

/// Adds keys to both providers.
pub fn start_with_keys(model: &str, keys: &str) -> Fixture {
    start_with_server(ModelServer::start(), model, keys)
}

/// Uses a server that was made ready before.
pub fn start_with_server(server: ModelServer, model: &str, keys: &str) -> Fixture {
    let fixture = Fixture::builder(home()).model_server(server, keys).model(model).start();
    fixture.create_agent("a", None);
    fixture
}

/// Who hears from now on what is said.
pub fn listen(fixture: &Fixture) -> Client {
    let mut listener = fixture.client();
    listener.call::<Subscribe>(&SubscribeParams { after: None }).expect("events.subscribe");
    listener
}

/// Waits until this was said by the model.
pub fn hear(listener: &mut Client, until: &str) {
    let mut heard = String::new();
    while heard != until {
        let (_, params) = listener.next_notification().expect("a notification");
        let event: Event = serde_json::from_str(params.get()).expect("an event");
        if event.kind == EventType::TurnDelta {
            heard.push_str(event.data["text"].as_str().unwrap_or_default());
        }
        assert!(until.starts_with(&heard), "{heard:?}");
    }
}

pub fn params(text: &str) -> SendParams {
    SendParams { agent: Some("a".into()), text: text.into(), ..Default::default() }
}

pub fn send(client: &mut Client, text: &str) -> Result<SendResult, CallError> {
    client.call::<Send>(&params(text))
}

pub fn cancel(client: &mut Client) -> Option<uuid::Uuid> {
    let params = CancelParams { conversation: None, agent: Some("a".into()), turn_id: None };
    client.call::<Cancel>(&params).expect("send.cancel").turn_id
}

/// Who said what.
pub fn record(client: &mut Client) -> Vec<(Role, String)> {
    client.messages("a").into_iter().map(|message| (message.role, message.content)).collect()
}

/// That each call of the record has its one result behind it.
pub fn assert_legal(messages: &[Message]) {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        if message.role == Role::ToolResult {
            let id = message.tool_call_id.clone().expect("a call's id");
            let at = open.iter().position(|call| *call == id).expect("a result belongs to an open call");
            open.remove(at);
        } else {
            assert!(open.is_empty(), "calls without results before {message:?}");
        }
        open.extend(message.tool_calls.iter().map(|call| call.id.clone()));
    }
    assert!(open.is_empty(), "the record ends with open calls");
}
