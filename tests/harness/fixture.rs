//! The surroundings of a test: a sealed home, a daemon, and, if wanted, a scripted model server.
//!
//! [`Fixture::builder`] takes an empty home, and [`Builder::start`] starts the daemon as a process. What only one suite
//! needs is a function of that suite on `&Fixture`.

use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::thread::JoinHandle;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::send::{Send, SendParams, SendResult};
use chorus_proto::{CallError, Client, Event, EventType, Message, Role};
use serde_json::Value;

use crate::client_ext::ClientExt as _;
use crate::daemon::Daemon;
use crate::home::Home;
use crate::model_server::{ModelServer, Response};
use crate::wait::{DEADLINE, wait_until};

/// A turn that runs while the test goes on.
pub type RunningTurn = JoinHandle<Result<SendResult, CallError>>;

/// The default model of the scripted server; it speaks Anthropic's wire format.
pub const ANTHROPIC_MODEL: &str = "anthropic/claude-test";
/// A model of the scripted server that speaks OpenAI's wire format.
pub const OPENAI_MODEL: &str = "local/small";

/// A home with whatever runs in it. Dropping it ends the daemon.
#[derive(Debug)]
pub struct Fixture {
    // Dropped in this order: the daemon first, so that it does not see its servers go.
    daemon: Option<Daemon>,
    models: Option<ModelServer>,
    pub home: Home,
    environment: Vec<(String, String)>,
    model: Option<String>,
}

/// Settings of a fixture that has not started yet.
#[derive(Debug)]
pub struct Builder {
    home: Home,
    models: Option<(ModelServer, String)>,
    top: String,
    tables: String,
    environment: Vec<(String, String)>,
    model: Option<String>,
}

impl Builder {
    /// Adds a scripted model server.
    #[must_use]
    pub fn models(self) -> Self {
        self.model_server(ModelServer::start(), "")
    }

    /// Adds a model server that was prepared before, with more keys in both of its providers.
    #[must_use]
    pub fn model_server(mut self, server: ModelServer, keys: &str) -> Self {
        self.models = Some((server, keys.into()));
        self
    }

    /// Sets the model of agents and of [`Fixture::answer`]; agents have none of their own otherwise.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Adds lines at the top of config.toml, before any table.
    #[must_use]
    pub fn keys(mut self, keys: &str) -> Self {
        self.top += &format!("{keys}\n");
        self
    }

    /// Adds tables to config.toml.
    #[must_use]
    pub fn tables(mut self, tables: &str) -> Self {
        self.tables += &format!("{tables}\n");
        self
    }

    /// Sets a variable in the daemon's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Writes config.toml and starts the daemon as a process.
    #[must_use]
    pub fn start(self) -> Fixture {
        let mut fixture = self.stopped();
        fixture.start();
        fixture
    }

    /// Writes config.toml; the daemon does not run yet.
    #[must_use]
    pub fn stopped(self) -> Fixture {
        let models = self.models.as_ref().map(|(server, keys)| server.config_toml_with(keys)).unwrap_or_default();
        self.home.write_config(&format!("{}{models}\n{}", self.top, self.tables));
        Fixture {
            daemon: None,
            models: self.models.map(|(server, _)| server),
            home: self.home,
            environment: self.environment,
            model: self.model,
        }
    }
}

impl Fixture {
    /// Begins a fixture in an empty home.
    #[must_use]
    pub fn builder(home: Home) -> Builder {
        Builder { home, models: None, top: String::new(), tables: String::new(), environment: Vec::new(), model: None }
    }

    /// Connects a client.
    #[must_use]
    pub fn client(&self) -> Client {
        self.daemon().client()
    }

    /// Returns the daemon's process.
    #[must_use]
    pub fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("no daemon runs")
    }

    /// Returns the name of the agents' model.
    #[must_use]
    pub fn model(&self) -> &str {
        self.model.as_deref().unwrap_or(ANTHROPIC_MODEL)
    }

    /// Returns the scripted model server.
    #[must_use]
    pub fn models(&self) -> &ModelServer {
        self.models.as_ref().expect("a model server")
    }

    /// Starts the daemon as a process.
    pub fn start(&mut self) {
        self.start_command(self.home.command(self.home.bins.chorusd));
    }

    /// Starts the daemon by another command, for example with a limit of the shell.
    pub fn start_command(&mut self, mut command: Command) {
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        self.daemon = Some(Daemon::start_command(&self.home, command));
    }

    fn take_process(&mut self) -> Daemon {
        self.daemon.take().expect("no daemon runs")
    }

    /// Sends SIGTERM to the daemon and waits for its exit.
    pub fn stop(&mut self) -> ExitStatus {
        self.take_process().terminate()
    }

    /// Sends SIGKILL to the daemon and waits for its exit.
    pub fn kill(&mut self) {
        self.take_process().kill9();
    }

    /// Kills the daemon and starts it again.
    #[must_use]
    pub fn crash(mut self) -> Self {
        self.kill();
        self.start();
        self
    }

    /// Creates an agent with the fixture's model; with a profile, or the default one.
    pub fn create_agent(&self, name: &str, permissions: Option<&str>) {
        self.init_agent(name, self.model.as_deref(), permissions);
    }

    /// Creates an agent of any model.
    pub fn create_agent_of(&self, name: &str, model: &str, permissions: Option<&str>) {
        self.init_agent(name, Some(model), permissions);
    }

    fn init_agent(&self, name: &str, model: Option<&str>, permissions: Option<&str>) {
        let (model, permissions) = (model.map(Into::into), permissions.map(Into::into));
        let params = InitParams { name: name.into(), model, permissions, ..Default::default() };
        self.client().call::<Init>(&params).expect("agent.init");
    }

    /// Queues a response of the fixture's model.
    pub fn answer(&self, response: Response) {
        match self.model() {
            ANTHROPIC_MODEL => self.models().anthropic().queue(response),
            _ => self.models().openai().queue(response),
        }
    }

    /// Queues a text of the fixture's model.
    pub fn reply(&self, text: &str) {
        self.answer(Response::text([text]));
    }

    /// Runs a turn.
    pub fn send(&self, agent: &str, text: &str) -> Result<SendResult, CallError> {
        self.client().call::<Send>(&send_params(agent, text))
    }

    /// Runs a turn on a thread of its own.
    #[must_use]
    pub fn spawn_send(&self, agent: &str, text: &str) -> RunningTurn {
        let (mut client, params) = (self.client(), send_params(agent, text));
        client.set_timeout(Some(DEADLINE * 3)).expect("a time-out");
        std::thread::spawn(move || client.call::<Send>(&params))
    }

    /// Returns the results of tool calls in an agent's context.
    #[must_use]
    pub fn tool_results(&self, agent: &str) -> Vec<Message> {
        let messages = self.client().messages(agent).into_iter();
        messages.filter(|message| message.role == Role::ToolResult).collect()
    }

    /// Waits until there are `count` events of a kind.
    pub fn wait_for_events(&self, kind: EventType, count: usize) -> Vec<Event> {
        let mut client = self.client();
        wait_until(kind.as_str(), DEADLINE, || {
            let events = client.events(0).into_iter();
            Some(events.filter(|event| event.kind == kind).collect::<Vec<_>>()).filter(|found| found.len() >= count)
        })
    }

    /// Returns the workspace of an agent.
    #[must_use]
    pub fn workspace(&self, agent: &str) -> PathBuf {
        self.home.agent_dir(agent).join("workspace")
    }

    /// Reads a key of an agent's agent.json.
    #[must_use]
    pub fn agent_json(&self, agent: &str, key: &str) -> Value {
        let text = std::fs::read_to_string(self.home.agent_dir(agent).join("agent.json")).expect("agent.json");
        serde_json::from_str::<Value>(&text).expect("JSON")[key].take()
    }
}

fn send_params(agent: &str, text: &str) -> SendParams {
    SendParams { agent: Some(agent.into()), text: text.into(), ..Default::default() }
}
