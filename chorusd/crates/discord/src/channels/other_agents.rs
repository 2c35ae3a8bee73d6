//! Agents that other nodes of a cluster have, by their channels: the node with the gateway receives their messages.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_base::sync::RwLock;
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::Ops;
use serenity::model::id::ChannelId;
use tokio::time::Instant;
use uuid::Uuid;

use super::AgentChannels;
use crate::app::DiscordApp;

/// Age from which what is known of a channel is read again before it is used.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Channels that are remembered to have no agent; if there are more, they are forgotten.
const MAX_WITHOUT_AGENT: usize = 10_000;

/// The agents as their rows described them. Empty without a cluster.
#[derive(Debug, Default)]
pub(crate) struct OtherAgents(RwLock<Inner>);

#[derive(Debug, Default)]
struct Inner {
    agents: HashMap<Uuid, Arc<AgentEntry>>,
    /// When a channel was looked up, and its agent if it has one.
    channels: HashMap<u64, (Instant, Option<Uuid>)>,
    /// When all were read.
    loaded: Option<Instant>,
}

impl OtherAgents {
    pub(super) fn by_channel(&self, channel: u64) -> Option<Arc<AgentEntry>> {
        let inner = self.0.read();
        let (_, agent) = inner.channels.get(&channel)?;
        inner.agents.get(&(*agent)?).cloned()
    }

    pub(super) fn by_id(&self, agent: Uuid) -> Option<Arc<AgentEntry>> {
        self.0.read().agents.get(&agent).cloned()
    }

    pub(super) fn by_name(&self, name: &str) -> Option<Arc<AgentEntry>> {
        self.0.read().agents.values().find(|agent| agent.settings.name == name).cloned()
    }

    /// Lists all of them, in no particular order.
    pub(crate) fn all(&self) -> Vec<Arc<AgentEntry>> {
        self.0.read().agents.values().cloned().collect()
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
        *self.0.write() = new;
        Ok(())
    }

    fn are_all_fresh(&self) -> bool {
        self.0.read().loaded.is_some_and(|at| at.elapsed() < MAX_AGE)
    }

    fn is_fresh(&self, channel: u64) -> bool {
        self.0.read().channels.get(&channel).is_some_and(|(at, _)| at.elapsed() < MAX_AGE)
    }

    fn insert(&self, channel: u64, agent: Option<Arc<AgentEntry>>) {
        let mut inner = self.0.write();
        if inner.channels.len() >= MAX_WITHOUT_AGENT + inner.agents.len() {
            inner.channels.retain(|_, (_, agent)| agent.is_some());
        }
        inner.channels.insert(channel, (Instant::now(), agent.as_ref().map(|agent| agent.settings.id)));
        if let Some(agent) = agent {
            inner.agents.insert(agent.settings.id, agent);
        }
    }
}

impl AgentChannels {
    /// Reads the agent of direct messages, unless that was done just now or it is here. Does nothing without a cluster.
    pub(crate) async fn refresh_direct_agent(&self, app: &DiscordApp) -> Result<()> {
        let Some(name) = self.dm_agent.as_deref().filter(|_| app.tables.shared.is_some()) else { return Ok(()) };
        if self.directory.by_name(name).is_some() || (self.direct_agent().is_some() && self.others.are_all_fresh()) {
            return Ok(());
        }
        self.others.load(&app.ops).await
    }

    /// Reads which agent of another node a channel, or the one that a thread is below, belongs to, unless that was done just
    /// now or the agent is here. Does nothing without a cluster.
    pub(crate) async fn refresh_other(&self, app: &DiscordApp, channel: ChannelId) -> Result<()> {
        let channel = self.permission_channel(channel).get();
        if app.tables.shared.is_none() || self.directory.by_channel(channel).is_some() || self.others.is_fresh(channel)
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
