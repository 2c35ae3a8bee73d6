//! Slash commands: each from end to end, who may use them, and what is told to whom.

mod agents;
mod autocomplete;
mod confirmation;
mod context;
mod everyday;
mod history;
mod overview;
mod permissions;
mod registration;
mod schedules;
mod search;
mod settings;
mod shortcuts;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::audit::{Audit, AuditParams, AuditRow};
use chorus_proto::{Client, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_GUILD, MANAGE_MESSAGES};
use chorus_tests::discord::{ChannelHandle, FakeDiscord, GuildHandle, Interaction, UserHandle, VisibleMessage};
use chorus_tests::{Daemon, Home};

use crate::home;

/// A server with a room for the agent `scribe`, somebody who may everything that commands need, and a stranger.
pub struct CommandFixture {
    pub discord: FakeDiscord,
    pub server: GuildHandle,
    /// A channel without an agent.
    pub hall: ChannelHandle,
    pub room: ChannelHandle,
    pub mara: UserHandle,
    pub otto: UserHandle,
    pub home: Home,
    pub daemon: Daemon,
}

impl CommandFixture {
    pub fn new() -> Self {
        Self::with("")
    }

    /// With more in config.toml, above the table of Discord.
    pub fn with(config: &str) -> Self {
        let discord = FakeDiscord::start();
        let server = discord.create_guild("home");
        let hall = server.create_channel("hall");
        let mara = server.add_member("mara", &[], MANAGE_CHANNELS | MANAGE_GUILD | MANAGE_MESSAGES);
        let otto = server.add_member("otto", &[], 0);
        let home = home();
        let daemon = Daemon::start_with(&home, &format!("{config}\n{}", discord.config_toml()));
        // The daemon has heard of the server when it answers there: then the agent gets its room.
        mara.run_slash_command(&hall, "ping", &[]).response_with("is online");
        daemon.client().init("scribe");
        let room = server.wait_for_channel("scribe");
        Self { discord, server, hall, room, mara, otto, home, daemon }
    }

    pub fn client(&self) -> Client {
        self.daemon.client()
    }

    /// Gives an agent a room that is there.
    pub fn bind(&self, agent: &str, room: &ChannelHandle) {
        let value = Some(room.id.to_string().into());
        let params = ConfigParams { name: agent.into(), key: Some("channel_id".into()), value };
        self.client().call::<Config>(&params).expect("agent.config");
    }

    /// Takes an agent its room.
    pub fn unbind(&self, agent: &str) {
        let params = ConfigParams { name: agent.into(), key: Some("channel_id".into()), value: Some("".into()) };
        self.client().call::<Config>(&params).expect("agent.config");
    }

    /// A conversation of two messages.
    pub fn talk(&self, agent: &str) {
        let talk = [(Role::User, "How do I bake bread?"), (Role::Assistant, "With flour, water, salt and time.")];
        self.client().append_all(agent, talk.map(|(role, text)| NewMessage::text(role, text)).into());
    }

    /// A command of Mara in the agent's room.
    pub fn slash(&self, command: &str, options: &[(&str, &str)]) -> Interaction {
        self.mara.run_slash_command(&self.room, command, options)
    }

    /// What of the audit log was done from Discord.
    pub fn audit(&self) -> Vec<AuditRow> {
        let rows = self.client().call::<Audit>(&AuditParams::default()).expect("audit").rows;
        rows.into_iter().filter(|row| row.user.starts_with("discord:")).collect()
    }

    /// Stops the daemon, starts it again, and waits until it listens.
    pub fn restart(self) -> Self {
        let Self { discord, server, hall, room, mara, otto, home, daemon } = self;
        discord.set_identify_interval(std::time::Duration::ZERO);
        daemon.terminate();
        discord.wait_disconnected();
        let daemon = Daemon::start(&home);
        discord.wait_connected();
        Self { discord, server, hall, room, mara, otto, home, daemon }
    }
}

/// An answer that is an error: seen by who asked only, with a hint.
#[track_caller]
pub fn refused(interaction: &Interaction, what: &str) -> VisibleMessage {
    let answer = interaction.response_with(what);
    assert!(answer.ephemeral && answer.content.contains(". "), "{answer:?}");
    answer
}
