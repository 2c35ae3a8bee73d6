//! Converts catalog rows and index entries of agents into the types of the protocol.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::{AgentRow, SessionRow, SessionTable};
use chorus_clock::Clock;
use chorus_config::agent::AgentConfig;
use chorus_journal::Ownership;
use chorus_proto::{Agent, AgentState, AgentStatus, ContextInfo, SessionRef, TodayUsage};
use chorus_session::conversation::ConversationKey;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use crate::agent::agent_index::AgentEntry;
use crate::agent::registry::Registry;
use crate::approvals::Approvals;
use crate::ops::context_meter::ContextMeter;
use crate::ops::conversations::describe_live;
use crate::ops::settings::EffectiveConfig;
use crate::usage::{Spending, UsageTracker};

/// Describes agents to clients: each with its live context, its newest session and what it has used today.
#[derive(Debug)]
pub struct AgentDescriber {
    pub sessions: Arc<dyn SessionTable>,
    pub registry: Arc<Registry>,
    pub approvals: Arc<Approvals>,
    pub usage: Arc<UsageTracker>,
    pub context_meter: Arc<ContextMeter>,
    pub config: Arc<EffectiveConfig>,
    pub home: PathBuf,
    pub clock: Clock,
    /// Which node has which agent; `None` if no other node can be asked.
    pub ownership: Option<Arc<dyn Ownership>>,
}

impl AgentDescriber {
    /// Converts entries into agents, each with its live context and its newest session.
    pub fn describe_all<'a>(&'a self, entries: &'a [Arc<AgentEntry>]) -> BoxFuture<'a, Result<Vec<Agent>>> {
        Box::pin(async move {
            if entries.is_empty() {
                return Ok(Vec::new());
            }
            let ids: Vec<Uuid> = entries.iter().map(|entry| entry.settings.id).collect();
            let last = self.sessions.newest_of_each(ids).await?;
            let today = self.usage.today_totals().await?;
            let shown: Vec<Uuid> = last.iter().flatten().map(|row| row.header.id).collect();
            let mut short = self.sessions.short_ids(shown).await?.into_iter();
            let infos = match entries {
                // Faster than all, and one agent is requested more often.
                [one] => self.registry.context_infos_of(one.settings.id),
                _ => self.registry.context_infos(),
            };
            let mut meters = self.context_meter.measure(entries).await?;
            let mut nodes = self.nodes_of(entries).await?;
            Ok(entries
                .iter()
                .zip(last)
                .map(|(entry, last)| {
                    let last = last.map(|row| to_session_ref(row, short.next().unwrap_or_default()));
                    let used = today.get(&entry.settings.id).map(to_today_usage);
                    let meter = meters.remove(&entry.settings.id);
                    let main = ConversationKey::main(entry.settings.id);
                    let context = infos.get(&main).cloned().map(|info| ContextInfo { meter, ..info });
                    let conversations = describe_live(&self.registry, entry, &infos);
                    let agent = self.to_active_agent(entry, context, last, used);
                    let state = if conversations.is_empty() { agent.state } else { AgentState::Active };
                    let node = nodes.remove(&entry.settings.id);
                    let unclaimed = self.ownership.is_some() && node.is_none();
                    Agent { state, conversations, node, unclaimed, ..agent }
                })
                .collect())
        })
    }

    /// Returns the node that has each agent; empty without a cluster.
    pub(in crate::ops) async fn nodes_of(&self, entries: &[Arc<AgentEntry>]) -> Result<HashMap<Uuid, String>> {
        let Some(ownership) = &self.ownership else { return Ok(HashMap::new()) };
        let ids = entries.iter().map(|entry| entry.settings.id);
        let (own, others): (Vec<Uuid>, Vec<Uuid>) = ids.partition(|agent| ownership.owns(*agent));
        let mut nodes = if others.is_empty() { HashMap::new() } else { ownership.owners(others).await? };
        nodes.extend(own.into_iter().map(|agent| (agent, ownership.node().to_owned())));
        Ok(nodes)
    }

    /// Returns the newest session of each conversation, in the order of `conversations`.
    pub(in crate::ops) async fn newest_sessions(
        &self,
        conversations: Vec<ConversationKey>,
    ) -> Result<Vec<Option<SessionRef>>> {
        let newest = self.sessions.newest_of_conversations(conversations).await?;
        let ids = newest.iter().flatten().map(|row| row.header.id).collect();
        let mut short = self.sessions.short_ids(ids).await?.into_iter();
        let mut describe = |row: SessionRow| to_session_ref(row, short.next().unwrap_or_default());
        Ok(newest.into_iter().map(|row| row.map(&mut describe)).collect())
    }

    /// Converts one entry as [`AgentDescriber::describe_all`] does.
    pub async fn describe(&self, entry: &Arc<AgentEntry>) -> Result<Agent> {
        let mut agents = self.describe_all(std::slice::from_ref(entry)).await?;
        agents.pop().ok_or_else(|| chorus_base::error::Error::internal("an agent description was aborted"))
    }

    /// Converts an agent that was just created or changed. A failed lookup must not look like a failed change, so it
    /// returns the agent without its newest session then.
    pub async fn describe_changed(&self, entry: &Arc<AgentEntry>) -> Agent {
        match self.describe(entry).await {
            Ok(agent) => agent,
            Err(failure) => {
                tracing::warn!(agent = %entry.settings.name, %failure, "cannot look up an agent's newest session");
                let main = ConversationKey::main(entry.settings.id);
                self.to_active_agent(entry, self.registry.context_info(main), None, None)
            }
        }
    }

    fn to_active_agent(
        &self,
        entry: &AgentEntry,
        context: Option<ContextInfo>,
        last_session: Option<SessionRef>,
        today: Option<TodayUsage>,
    ) -> Agent {
        Agent {
            id: entry.settings.id,
            name: entry.settings.name.clone(),
            status: AgentStatus::Active,
            state: if context.is_some() { AgentState::Active } else { AgentState::Idle },
            model: entry.settings.model.clone(),
            permissions: entry.permissions.clone(),
            created_at: entry.created_at,
            channel_id: entry.channel_id.clone(),
            guild_id: entry.guild_id.clone(),
            path: entry.settings.dir.to_string_lossy().into_owned(),
            workspace: entry
                .settings
                .shared_dir
                .as_ref()
                .map(|_| entry.settings.workspace().to_string_lossy().into_owned()),
            context,
            conversations: Vec::new(),
            attached: self.registry.attached.list(ConversationKey::main(entry.settings.id)),
            last_session,
            today,
            turn: self.registry.running.status(ConversationKey::main(entry.settings.id), self.clock.ticks()),
            approvals: self.approvals.count_open(entry.settings.id),
            problem: entry.config_problem.clone(),
            import_source: entry.settings.import_source.clone(),
            node: None,
            unreachable: false,
            unclaimed: false,
            blocked: None,
        }
    }

    /// Converts the row of a destroyed agent.
    #[must_use]
    pub fn describe_destroyed(&self, row: &AgentRow) -> Agent {
        let config: serde_json::Value = serde_json::from_str(&row.config).unwrap_or_default();
        let text = |key: &str| config.get(key).and_then(serde_json::Value::as_str).map(str::to_owned);
        // agent.json has null where defaults apply.
        let permissions = match AgentConfig::parse(&row.config, &self.config.current()) {
            Ok(config) => config.permissions,
            Err(_) => config.get("permissions").cloned().unwrap_or_default(),
        };
        Agent {
            id: row.id,
            name: row.name.clone(),
            status: AgentStatus::Destroyed,
            state: AgentState::Destroyed,
            model: text("model"),
            permissions,
            created_at: row.created_at,
            channel_id: text("channel_id"),
            guild_id: text("guild_id"),
            path: self.home.join(&row.dir).to_string_lossy().into_owned(),
            workspace: None,
            context: None,
            conversations: Vec::new(),
            attached: Vec::new(),
            last_session: None,
            today: None,
            turn: None,
            approvals: 0,
            problem: None,
            import_source: None,
            node: None,
            unreachable: false,
            unclaimed: false,
            blocked: None,
        }
    }
}

fn to_today_usage(spent: &Spending) -> TodayUsage {
    TodayUsage {
        tokens: spent.tokens,
        cost_usd: (spent.unpriced < spent.calls).then_some(spent.cost),
        calls: spent.calls,
        unpriced_calls: spent.unpriced,
    }
}

fn to_session_ref(row: SessionRow, short_id: String) -> SessionRef {
    SessionRef {
        id: row.header.id,
        short_id,
        session_id: row.header.session_id,
        saved_at: row.header.saved_at,
        ended_at: row.header.source.as_ref().map(|source| source.ended_at),
        description: row.header.description,
        summary: row.header.summary,
        message_count: row.header.message_count,
    }
}
