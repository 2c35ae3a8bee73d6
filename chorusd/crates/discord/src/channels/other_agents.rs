//! Agents that other nodes of a cluster have, by their channels: the node with the gateway receives their messages.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_base::sync::RwLock;
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::Ops;
use serenity::model::id::ChannelId;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::AgentChannels;
use crate::app::DiscordApp;

/// Age from which a channel without an agent is looked up again.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Time between two attempts to read the agents of other nodes.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Channels that are remembered to have no agent; if there are more, they are forgotten.
const MAX_WITHOUT_AGENT: usize = 10_000;

/// The agents as their rows described them. Empty without a cluster.
#[derive(Debug, Default)]
pub(crate) struct OtherAgents {
    inner: RwLock<Inner>,
    /// Lets one task at a time read all of them.
    load_lock: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Inner {
    agents: HashMap<Uuid, Arc<AgentEntry>>,
    /// When a channel was looked up, and its agent if it has one.
    channels: HashMap<u64, (Instant, Option<Uuid>)>,
    /// When the last reading of all began.
    loaded: Option<Instant>,
}

impl OtherAgents {
    pub(super) fn by_channel(&self, channel: u64) -> Option<Arc<AgentEntry>> {
        let inner = self.inner.read();
        let (_, agent) = inner.channels.get(&channel)?;
        inner.agents.get(&(*agent)?).cloned()
    }

    pub(super) fn by_id(&self, agent: Uuid) -> Option<Arc<AgentEntry>> {
        self.inner.read().agents.get(&agent).cloned()
    }

    pub(super) fn by_name(&self, name: &str) -> Option<Arc<AgentEntry>> {
        self.inner.read().agents.values().find(|agent| agent.settings.name == name).cloned()
    }

    /// Lists all of them, in no particular order.
    pub(crate) fn all(&self) -> Vec<Arc<AgentEntry>> {
        self.inner.read().agents.values().cloned().collect()
    }

    /// Reads all of them.
    pub(crate) async fn load(&self, ops: &Ops) -> Result<()> {
        let now = Instant::now();
        let mut new = Inner::default();
        for agent in ops.agent_resolver.claims.others().await? {
            let id = agent.settings.id;
            if let Some(channel) = agent.channel() {
                new.channels.insert(channel, (now, Some(id)));
            }
            new.agents.insert(id, agent);
        }
        new.loaded = Some(now);
        *self.inner.write() = new;
        Ok(())
    }

    /// Reads all of them, unless a reading began after `since`.
    async fn load_since(&self, ops: &Ops, since: Instant) -> Result<()> {
        let _one_at_a_time = self.load_lock.lock().await;
        let is_loaded = self.inner.read().loaded.is_some_and(|at| at >= since);
        if is_loaded { Ok(()) } else { self.load(ops).await }
    }

    /// Returns whether a channel had no agent just now.
    fn has_none(&self, channel: u64) -> bool {
        let inner = self.inner.read();
        inner.channels.get(&channel).is_some_and(|(at, agent)| agent.is_none() && at.elapsed() < MAX_AGE)
    }

    fn insert(&self, channel: u64, agent: Option<Arc<AgentEntry>>) {
        let mut inner = self.inner.write();
        if inner.channels.len() >= MAX_WITHOUT_AGENT + inner.agents.len() {
            inner.channels.retain(|_, (_, agent)| agent.is_some());
        }
        inner.channels.insert(channel, (Instant::now(), agent.as_ref().map(|agent| agent.settings.id)));
        if let Some(agent) = agent {
            inner.agents.insert(agent.settings.id, agent);
        }
    }

    /// Replaces what is known of the agent with this name.
    fn replace(&self, name: &str, agent: Option<Arc<AgentEntry>>) {
        let mut inner = self.inner.write();
        inner.agents.retain(|_, other| other.settings.name != name);
        if let Some(agent) = agent {
            if let Some(channel) = agent.channel() {
                inner.channels.insert(channel, (Instant::now(), Some(agent.settings.id)));
            }
            inner.agents.insert(agent.settings.id, agent);
        }
    }
}

impl AgentChannels {
    /// Looks up the agents that have moved away from this node, with retries. Does nothing without a cluster.
    pub(crate) async fn look_up_moved(&self, app: &DiscordApp) {
        let since = Instant::now();
        while app.tables.shared.is_some()
            && let Err(failure) = self.others.load_since(&app.ops, since).await
        {
            tracing::warn!(%failure, "cannot read which agents other nodes have; retrying");
            tokio::select! {
                () = sleep(RETRY_INTERVAL) => {}
                () = app.stop.cancelled() => return,
            }
        }
    }

    /// Reads the agent of direct messages, unless it is here: a message to one that was destroyed just now, while another has
    /// its name, would not be answered. Does nothing without a cluster.
    pub(crate) async fn refresh_direct_agent(&self, app: &DiscordApp) -> Result<()> {
        let Some(name) = self.dm_agent.as_deref().filter(|_| app.tables.shared.is_some()) else { return Ok(()) };
        if self.directory.by_name(name).is_none() {
            self.others.replace(name, app.ops.agent_resolver.claims.describe_by_name(name).await?);
        }
        Ok(())
    }

    /// Reads which agent of another node a channel, or the one that a thread is below, belongs to, unless the agent is here
    /// or there was none just now. Does nothing without a cluster.
    pub(crate) async fn refresh_other(&self, app: &DiscordApp, channel: ChannelId) -> Result<()> {
        let channel = self.permission_channel(channel).get();
        if app.tables.shared.is_none() || self.directory.by_channel(channel).is_some() || self.others.has_none(channel)
        {
            return Ok(());
        }
        let row = app.tables.channels.get(channel).await?.filter(|row| row.parent.is_none() && row.user.is_none());
        let agent = match row {
            Some(row) => app.ops.agent_resolver.claims.describe(row.agent).await?,
            None => None,
        };
        self.others.insert(channel, agent.filter(|agent| agent.channel() == Some(channel)));
        Ok(())
    }
}
