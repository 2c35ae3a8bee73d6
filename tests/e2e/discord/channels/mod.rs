//! Channels of agents: made, bound, renamed, deleted with their agent or by hand.

mod bind;
mod deleted;
mod init;

use chorus_proto::methods::agent::{Config, ConfigParams, ConfigResult, Init, InitParams, InitResult};
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_proto::{Agent, CallError, Client};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::{ChannelHandle, FakeDiscord, GuildHandle};
use chorus_tests::model_server::ModelServer;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::Value;

use crate::home;

/// A daemon that is in one server of Discord, with a model.
pub struct ChannelFixture {
    pub server: ModelServer,
    pub home: Home,
    pub daemon: Option<Daemon>,
    pub guild: GuildHandle,
    pub discord: FakeDiscord,
}

impl ChannelFixture {
    pub fn new() -> Self {
        Self::with("", "", "")
    }

    /// With more keys at the top, more tables, and more keys of `[discord]`.
    pub fn with(top: &str, tables: &str, keys: &str) -> Self {
        let (discord, server, home) = (FakeDiscord::start(), ModelServer::start(), home());
        let guild = discord.create_guild("home");
        home.write_config(&format!("{top}\n{}\n{tables}\n{}{keys}\n", server.config_toml(), discord.config_toml()));
        let fixture = Self { server, home, daemon: None, guild, discord };
        fixture.started()
    }

    fn started(mut self) -> Self {
        self.start();
        self
    }

    /// Starts the daemon, and waits until it is connected.
    pub fn start(&mut self) {
        // Discord wants its time between two connections.
        self.discord.set_identify_interval(std::time::Duration::ZERO);
        self.daemon = Some(Daemon::start(&self.home));
        self.connected();
    }

    pub fn connected(&self) {
        self.discord.wait_connected();
        let mut client = self.client();
        wait_until("the daemon to be connected", DEADLINE, || {
            let status = client.call::<Status>(&StatusParams::default()).expect("status");
            status.discord.connected.then_some(())
        });
    }

    /// Waits until the daemon knows that it is not connected.
    pub fn away(&self) {
        let mut client = self.client();
        wait_until("the daemon to be away", DEADLINE, || {
            let status = client.call::<Status>(&StatusParams::default()).expect("status");
            (!status.discord.connected).then_some(())
        });
    }

    /// An orderly stop.
    pub fn stop(&mut self) {
        self.daemon.take().expect("a daemon").terminate();
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.daemon.take().expect("a daemon").kill9();
    }

    pub fn client(&self) -> Client {
        self.daemon.as_ref().expect("a daemon").client()
    }

    pub fn log(&self) -> String {
        self.daemon.as_ref().expect("a daemon").read_log()
    }

    /// Makes an agent from the terminal.
    pub fn init(&self, name: &str) -> Result<InitResult, CallError> {
        self.client().call::<Init>(&InitParams {
            name: name.into(),
            system_prompt: Some(format!("You are {name}.")),
            ..InitParams::default()
        })
    }

    /// The same with these permissions, in a channel.
    pub fn agent_with(&self, name: &str, permissions: &str) -> ChannelHandle {
        let params = InitParams { name: name.into(), permissions: Some(permissions.into()), ..InitParams::default() };
        let made = self.client().call::<Init>(&params).expect("agent.init");
        self.room(&made.agent)
    }

    /// Makes an agent, and gives its channel.
    pub fn agent(&self, name: &str) -> ChannelHandle {
        let made = self.init(name).expect("agent.init");
        assert_eq!(made.warnings, Vec::<String>::new());
        self.room(&made.agent)
    }

    /// The channel of an agent.
    pub fn room(&self, agent: &Agent) -> ChannelHandle {
        let id: u64 = agent.channel_id.as_ref().expect("a channel").parse().expect("its number");
        assert_eq!(agent.guild_id.as_deref(), Some(&*self.guild.id.to_string()));
        self.guild.text_channels().into_iter().find(|room| room.id == id).expect("the channel of the agent")
    }

    /// Sets a key of an agent.
    pub fn set(&self, name: &str, key: &str, value: impl Into<Value>) -> Result<ConfigResult, CallError> {
        let params = ConfigParams { name: name.into(), key: Some(key.into()), value: Some(value.into()) };
        self.client().call::<Config>(&params)
    }

    /// What agent.json says of a key.
    pub fn said(&self, name: &str, key: &str) -> Value {
        let text = std::fs::read_to_string(self.home.agent_dir(name).join("agent.json")).expect("agent.json");
        serde_json::from_str::<Value>(&text).expect("JSON")[key].clone()
    }

    /// Waits until an agent has no channel.
    pub fn detached(&self, name: &str) {
        let mut client = self.client();
        wait_until("the agent to have no channel", DEADLINE, || {
            client.agent_status(name).channel_id.is_none().then_some(())
        });
        assert!(self.said(name, "channel_id").is_null());
    }
}

/// What an error says, with its hint.
pub fn told<T: std::fmt::Debug>(answer: Result<T, CallError>) -> String {
    match answer {
        Err(CallError::Rpc(error)) => {
            format!("{} {}", error.message, error.data.and_then(|data| data.hint).unwrap_or_default())
        }
        other => panic!("an error was due, not {other:?}"),
    }
}
