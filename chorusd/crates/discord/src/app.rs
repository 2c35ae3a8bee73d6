//! State that all parts of the Discord front end share.

use std::sync::Arc;

use chorus_base::Secret;
use chorus_engine::ops::Ops;
use chorus_engine::ops::discord::{ConnectionState, DiscordLease, DiscordTables};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::channels::{AgentChannels, GuildAllowlist};
use super::commands::SlashCommands;
use super::inbound::Inbound;
use super::outbox::Outbox;
use super::reply::TurnOwners;
use super::rest::RestClient;
use super::role_cache::RoleCache;
use super::shards::ShardSet;

/// One Discord application, for as long as the daemon runs.
#[derive(Debug)]
pub(crate) struct DiscordApp {
    pub ops: Arc<Ops>,
    pub tables: DiscordTables,
    pub rest: Arc<RestClient>,
    pub channels: AgentChannels,
    pub token: Secret,
    pub stop: CancellationToken,
    pub shards: ShardSet,
    /// Tracks all tasks of the front end, so that a stop can wait for them.
    pub tasks: TaskTracker,
    /// Names and permissions of roles, to which the configuration refers by name.
    pub roles: RoleCache,
    pub commands: SlashCommands,
    pub inbound: Inbound,
    /// Posts on their way to channels.
    pub outbox: Outbox,
    /// Running turns that were requested in channels.
    pub running_turns: Arc<TurnOwners>,
}

impl DiscordApp {
    /// Returns `None` if there is no token or it cannot be used; the latter is reported in the state.
    pub(crate) async fn new(ops: Arc<Ops>, stop: CancellationToken, tasks: TaskTracker) -> Option<Self> {
        let config = ops.config.discord.clone();
        let stopping = stop.clone();
        let made = chorus_runtime::spawn_blocking(move || {
            let Some(token) = config.read_token()? else { return Ok(None) };
            let rest = RestClient::new(&config, &token, stopping).map_err(|e| e.to_string())?;
            Ok::<_, String>(Some((token, rest, Inbound::new(&config)?)))
        });
        let made = match made.await.unwrap_or_else(|e| Err(e.to_string())) {
            Ok(Some(made)) => {
                GuildAllowlist::new(&ops).await.map(|served| Some((made, served))).map_err(|e| e.to_string())
            }
            Ok(None) => Ok(None),
            Err(why) => Err(why),
        };
        match made {
            Ok(None) => None,
            Ok(Some(((token, rest, inbound), served))) => {
                let rooms = AgentChannels::new(ops.agents.clone(), served, ops.config.discord.dm_agent.clone());
                let (guilds, slash) = (RoleCache::default(), SlashCommands::default());
                let rest = Arc::new(rest);
                let tables = ops.discord_tables();
                let posts = Outbox::new(&tables, ops.clone(), rest.clone(), stop.clone(), tasks.clone());
                let running = Arc::default();
                Some(Self {
                    ops,
                    tables,
                    rest,
                    channels: rooms,
                    token,
                    shards: ShardSet::default(),
                    stop,
                    tasks,
                    roles: guilds,
                    commands: slash,
                    inbound,
                    outbox: posts,
                    running_turns: running,
                })
            }
            Err(why) => {
                tracing::warn!(why, "Discord is off");
                let hint =
                    "fix [discord] in config.toml or the environment, then run `chorusctl daemon restart`".into();
                ops.discord.set_state(ConnectionState::Stopped { why, hint });
                None
            }
        }
    }
}

impl DiscordApp {
    /// Returns whether this process has a shard, and may write what only the one that has it writes.
    pub(crate) fn has_shard(&self, shard: u32) -> bool {
        let lease = DiscordLease::Gateway { shard, of: self.shards.count() };
        self.tables.shared.as_ref().is_none_or(|shared| shared.holds(lease))
    }

    /// Returns whether this process has a shard.
    pub(crate) fn has_any_shard(&self) -> bool {
        (0..self.shards.count()).any(|shard| self.has_shard(shard))
    }

    /// Redacts the secrets in `text`.
    #[must_use]
    pub(crate) fn redact(&self, text: &str) -> String {
        self.ops.redactor.redact_text(text).into_owned()
    }
}
