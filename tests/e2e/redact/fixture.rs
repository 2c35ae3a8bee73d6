//! A home with two providers, and everywhere that a secret may come to.

use std::path::Path;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::context::{Save, SaveParams};
use chorus_proto::methods::events::{List, ListParams};
use chorus_proto::methods::send::{Progress, SendParams, SendResult, TurnEvent};
use chorus_proto::{CallError, Client};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{Daemon, Home};

use crate::home;

/// A key that comes from the environment, for the provider `local`.
pub const OTHER_KEY: &str = "local/key+0123456789==";

/// `a` is a model of Anthropic's, `b` one of another provider.
pub struct RedactFixture {
    pub server: ModelServer,
    pub home: Home,
    pub daemon: Daemon,
    /// Everything that came over the socket.
    pub heard: String,
}

impl RedactFixture {
    pub fn new() -> Self {
        let (server, home) = (ModelServer::start(), home());
        home.write_config(
            &server.config_toml_with("").replace("kind = \"openai\"", "kind = \"openai\"\napi_key_env = \"LOCAL_KEY\""),
        );
        let mut command = home.command(home.bins.chorusd);
        command.env("LOCAL_KEY", OTHER_KEY).env("CHORUS_LOG_LEVEL", "debug");
        let daemon = Daemon::start_command(&home, command);
        for (name, model) in [("a", "anthropic/claude-test"), ("b", "local/small")] {
            let params = InitParams { name: name.into(), model: Some(model.into()), ..Default::default() };
            daemon.client().call::<Init>(&params).expect("agent.init");
        }
        Self { server, home, daemon, heard: String::new() }
    }

    pub fn client(&self) -> Client {
        self.daemon.client()
    }

    pub fn answer(&self, agent: &str, answer: Response) {
        match agent {
            "b" => self.server.openai().queue(answer),
            _ => self.server.anthropic().queue(answer),
        }
    }

    /// A turn; what comes of it is heard, with what was streamed.
    pub fn send(&mut self, agent: &str) -> Result<SendResult, CallError> {
        let params = SendParams { agent: Some(agent.into()), text: "go on".into(), stream: true, ..Default::default() };
        let mut streamed = [String::new(), String::new()];
        let mut raw = String::new();
        let result = self.client().call_streaming("send", &params, &mut |progress| {
            raw.push_str(progress.get());
            match serde_json::from_str::<Progress>(progress.get())?.said {
                TurnEvent::Text(text) => streamed[0].push_str(&text),
                TurnEvent::Thinking(text) => streamed[1].push_str(&text),
                _ => {}
            }
            Ok(())
        });
        self.heard.push_str(&raw);
        self.heard.extend(streamed);
        match result {
            Ok(result) => {
                self.heard.push_str(result.get());
                Ok(serde_json::from_str(result.get()).expect("an answer"))
            }
            Err(error) => {
                self.heard.push_str(&format!("{error:?}"));
                Err(error)
            }
        }
    }

    /// Every place where a secret must not be, with what is there.
    pub fn places(mut self) -> Vec<(String, Vec<u8>)> {
        let mut client = self.client();
        for (agent, conversation) in [("a", "main"), ("b", "main"), ("b", "from-d")] {
            if !client.conversation_exists(agent, conversation) {
                continue;
            }
            let messages = client.messages_in(agent, conversation);
            self.heard.push_str(&serde_json::to_string(&messages).expect("messages"));
            if !messages.is_empty() {
                let params = SaveParams {
                    agent: Some(agent.into()),
                    conversation: Some(conversation.into()),
                    description: Some("what was said".into()),
                    ..Default::default()
                };
                client.call::<Save>(&params).expect("context.save");
            }
        }
        let events = client.call::<List>(&ListParams { after: Some(0), ..Default::default() }).expect("events.list");
        self.heard.push_str(&serde_json::to_string(&events).expect("events"));
        self.heard.push_str(&chorusctl(&self.home, ["models", "--json"]).stdout);
        let mut places = vec![("the socket".to_owned(), self.heard.into_bytes())];
        for request in self.server.requests() {
            places.push(("a request to the model".to_owned(), request.text.into_bytes()));
        }
        let read = |places: &mut Vec<_>| files(&self.home.path, places);
        read(&mut places);
        places.push(("standard error".to_owned(), self.daemon.read_log().into_bytes()));
        assert!(self.daemon.terminate().success());
        read(&mut places);
        places
    }
}

fn files(folder: &Path, into: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, into);
        } else if path.is_file() {
            into.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()));
        }
    }
}
