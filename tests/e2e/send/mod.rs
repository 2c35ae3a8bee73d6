//! Turns: a message, what the model says, the tools it calls; through the socket, against a scripted model server that
//! speaks either wire format.

pub mod cli;
mod conversation;
pub mod crash;
mod errors;
mod full_disk;
mod images;
mod keys;
mod output_limit;
mod prompt_caching;
mod queue;
mod small_models;
mod stop;
mod text_files;
pub mod tool_calls;

use std::thread::JoinHandle;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::events::{Subscribe, SubscribeParams};
use chorus_proto::methods::send::{Cancel, CancelParams, Send, SendParams, SendResult};
use chorus_proto::{CallError, Client, Event, EventType, Message, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use crate::events::events;
use crate::home;

/// The model of each wire format.
pub const MODELS: [&str; 2] = ["anthropic/claude-test", "local/small"];

/// A daemon with a model, and the agent `a`.
pub struct Rig {
    pub server: ModelServer,
    pub home: Home,
    pub daemon: Daemon,
    pub model: &'static str,
}

impl Rig {
    pub fn new() -> Self {
        Self::on(MODELS[0])
    }

    pub fn on(model: &'static str) -> Self {
        Self::with(model, "")
    }

    /// With more keys in both providers.
    pub fn with(model: &'static str, keys: &str) -> Self {
        Self::beside(ModelServer::start(), model, keys)
    }

    /// Beside a server that was made ready before.
    pub fn beside(server: ModelServer, model: &'static str, keys: &str) -> Self {
        let home = home();
        let daemon = Daemon::start_with(&home, &server.config_toml_with(keys));
        let params = InitParams { name: "a".into(), model: Some(model.into()), ..Default::default() };
        daemon.client().call::<Init>(&params).expect("agent.init");
        Self { server, home, daemon, model }
    }

    pub fn client(&self) -> Client {
        self.daemon.client()
    }

    /// The next answer of the agent's model.
    pub fn answer(&self, answer: Response) {
        match self.model {
            model if model == MODELS[0] => self.server.anthropic().queue(answer),
            _ => self.server.openai().queue(answer),
        }
    }

    pub fn say(&self, text: &str) {
        self.answer(Response::text([text]));
    }

    /// A turn that goes on beside the test.
    pub fn send_beside(&self, text: &str) -> JoinHandle<Result<SendResult, CallError>> {
        let (mut client, params) = (self.client(), params(text));
        std::thread::spawn(move || client.call::<Send>(&params))
    }

    /// Waits until an event of this kind was told `count` times.
    pub fn wait_for(&self, kind: EventType, count: usize) -> Vec<Event> {
        let mut client = self.client();
        let all = |client: &mut Client| -> Vec<_> {
            events(client, 0).into_iter().filter(|event| event.kind == kind).collect()
        };
        wait_until(kind.as_str(), DEADLINE, || Some(all(&mut client)).filter(|found| found.len() >= count))
    }

    /// Who hears from now on what is said.
    pub fn listener(&self) -> Client {
        let mut listener = self.client();
        listener.call::<Subscribe>(&SubscribeParams { after: None }).expect("events.subscribe");
        listener
    }

    /// Ends the daemon at once and starts it again.
    pub fn crash(self) -> Self {
        self.daemon.kill9();
        Self { daemon: Daemon::start(&self.home), ..self }
    }
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
    let params = CancelParams { agent: Some("a".into()), turn_id: None };
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
