//! The ways on which a conversation is continued, each with the texts that a model then sees.

use std::fs;
use std::sync::Arc;

use chorus_base::sync::Mutex;
use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::methods::continuation::{Compact, CompactParams, Resume, ResumeParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::{Client, Message, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{Daemon, Home};
use serde_json::Value;

use super::tool_files::{self, TOOLS};

/// Texts that a model sees.
pub type Texts = Vec<String>;

const MODEL: &str = "anthropic/claude-test";
/// The message with which a person continues.
const NEXT: &str = "Go on.";
/// Messages between two turns while a conversation grows.
const MESSAGES_PER_TURN: usize = 20;

/// A daemon with a model that records what it is sent and says nothing of use: notes and summaries are made by rules.
pub struct Continuations {
    home: Home,
    daemon: Daemon,
    last_request: Arc<Mutex<Texts>>,
    _models: ModelServer,
}

impl Continuations {
    pub fn start(home: Home) -> Self {
        let models = ModelServer::start();
        models.enable_strict_mode();
        let last_request = Arc::new(Mutex::new(Texts::new()));
        let seen = last_request.clone();
        models.on_turn_request(move |body| {
            let mut texts = Texts::new();
            [&body["system"], &body["messages"]].into_iter().for_each(|part| add_strings(part, &mut texts));
            *seen.lock() = texts;
            Response::text(["Noted."])
        });
        // Agents have no model unless they are given one, so that their summaries are made by rules.
        let config = models.config_toml().replacen(&format!("default_model = \"{MODEL}\"\n"), "", 1);
        let daemon = Daemon::start_with(&home, &config);
        Self { home, daemon, last_request, _models: models }
    }

    /// Continues a conversation on each way. Returns their names with the texts.
    pub fn run(&self, number: usize, messages: &[NewMessage]) -> Vec<(String, Texts)> {
        let (mut client, agent) = (self.daemon.client(), |way: &str| format!("{way}-{number}"));
        let mut ways = Vec::new();
        let mut add = |name: &str, texts: Texts| ways.push((name.to_owned(), texts));

        let writer = agent("writer");
        client.init(&writer);
        client.append_all(&writer, messages.to_vec());
        add("all messages", texts_of(&client.messages(&writer)));
        let session = client.save(&writer, "whole").header.id.to_string();

        let other = agent("restored");
        init_with_model(&mut client, &other);
        client.restore(&other, &session);
        add("restored: all messages", texts_of(&client.messages(&other)));
        add("restored: window of the next call", self.send_next(&mut client, &other));

        let grown = agent("grown");
        init_with_model(&mut client, &grown);
        add("compacted in place as it grew", self.grow(&mut client, &grown, messages));

        let by_hand = agent("by-hand");
        client.init(&by_hand);
        client.append_all(&by_hand, messages.to_vec());
        let params = CompactParams { agent: Some(by_hand.clone()), conversation: None, undo: false };
        client.call::<Compact>(&params).expect("context.compact");
        add("`context compact`", window(&mut client, &by_hand));

        for tool in TOOLS {
            let file = self.export(&writer, &session, tool);
            add(&format!("carried into {tool}"), tool_files::read(tool, &file));
            add(&format!("carried into {tool} and imported"), self.import(&mut client, &agent(tool), tool, &file));
        }

        resume(&mut client, &writer, &session);
        add("`context resume`", window(&mut client, &writer));
        client.append(&writer, NEXT);
        let resumed = client.save(&writer, "resumed").header.id.to_string();
        for tool in TOOLS {
            let file = self.export(&writer, &resumed, tool);
            add(&format!("resumed, then carried into {tool}"), tool_files::read(tool, &file));
        }
        ways
    }

    /// Has the agent's model called, and returns what it was sent.
    fn send_next(&self, client: &mut Client, agent: &str) -> Texts {
        let params = SendParams { agent: Some(agent.into()), text: NEXT.into(), ..Default::default() };
        client.call::<Send>(&params).expect("a turn");
        std::mem::take(&mut *self.last_request.lock())
    }

    /// Adds the messages turn by turn, with a call of the model from time to time. Returns what the last one was sent.
    fn grow(&self, client: &mut Client, agent: &str, messages: &[NewMessage]) -> Texts {
        let mut pending: Vec<NewMessage> = Vec::new();
        for message in messages {
            if message.role == Role::User && pending.len() >= MESSAGES_PER_TURN {
                client.append_all(agent, std::mem::take(&mut pending));
                self.send_next(client, agent);
            }
            pending.push(message.clone());
        }
        client.append_all(agent, pending);
        self.send_next(client, agent)
    }

    /// Exports a session as the conversation of another program, and returns the file.
    fn export(&self, agent: &str, session: &str, tool: &str) -> String {
        if tool == "opencode" {
            return chorusctl(&self.home, ["--agent", agent, "export", session, "--as", tool]).expect_success();
        }
        let said = chorusctl(&self.home, ["--json", "--agent", agent, "export", session, "--as", tool]).expect_json();
        let file = said["conversations"][0]["file"].as_str().expect("a path");
        fs::read_to_string(file).expect("the file")
    }

    /// Imports such a file, and returns the texts of the session.
    fn import(&self, client: &mut Client, agent: &str, tool: &str, file: &str) -> Texts {
        client.init(agent);
        let path = self.home.temp_dir().join("carried");
        fs::write(&path, file).expect("a file");
        let path = path.to_str().expect("UTF-8");
        let said = chorusctl(&self.home, ["--json", "--agent", agent, "import", "--from", tool, path]).expect_json();
        let session = said["sessions"][0]["id"].as_str().expect("an id").to_owned();
        texts_of(&client.get_session(agent, &session).1)
    }
}

fn init_with_model(client: &mut Client, agent: &str) {
    let params = InitParams { name: agent.into(), model: Some(MODEL.into()), ..Default::default() };
    client.call::<Init>(&params).expect("agent.init");
}

fn resume(client: &mut Client, agent: &str, session: &str) {
    let params =
        ResumeParams { agent: Some(agent.into()), conversation: None, session: session.into(), as_conversation: None };
    client.call::<Resume>(&params).expect("context.resume");
}

/// The texts of the next call of an agent that has no model.
fn window(client: &mut Client, agent: &str) -> Texts {
    let params = ShowParams { agent: Some(agent.into()), window: true, ..Default::default() };
    let window = client.call::<Show>(&params).expect("context.show").window.expect("a window");
    let system = window.system.into_iter().map(|piece| piece.text);
    let messages: Vec<Message> = window.messages.into_iter().map(|message| message.message).collect();
    system.chain(texts_of(&messages)).collect()
}

fn texts_of(messages: &[Message]) -> Texts {
    let mut texts = Texts::new();
    for message in messages {
        texts.push(message.content.clone());
        for call in &message.tool_calls {
            add_strings(&serde_json::from_str(call.params.get()).expect("JSON"), &mut texts);
        }
    }
    texts
}

/// Adds all strings of a value.
pub fn add_strings(value: &Value, texts: &mut Texts) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| add_strings(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| add_strings(value, texts)),
        _ => {}
    }
}
