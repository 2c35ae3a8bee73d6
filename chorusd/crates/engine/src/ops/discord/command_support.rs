//! Support for slash commands besides the operations: registration hashes, session lists, summaries, and the audit log.

use std::collections::BTreeMap;

use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_catalog::{AuditDecision, SessionQuery};
use chorus_proto::methods::events::SubscribeParams;
use chorus_proto::{EventType, Session};
use uuid::Uuid;

use crate::agent::agent_index::AgentEntry;
use crate::ops::Ops;
use crate::ops::conversations::{ConversationKey, SessionScope};
use crate::ops::events::subscribe::{SubscriptionItem, subscribe};

/// The setting with the hashes of the commands that are registered in each server.
const REGISTERED_COMMANDS: &str = "discord_commands";

/// Returns the hash of the commands that are registered in each server, by `<application>:<server>`.
pub async fn registered_hashes(ops: &Ops) -> Result<BTreeMap<String, String>> {
    let text = ops.store.catalog.settings.get(REGISTERED_COMMANDS).await?;
    // An unreadable value only costs another registration.
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

/// Stores the hash of a server's commands; `None` deletes it. Must not be called concurrently.
pub async fn set_registered_hash(ops: &Ops, server: &str, hash: Option<String>) -> Result<()> {
    let mut all = registered_hashes(ops).await?;
    match hash {
        Some(hash) => all.insert(server.to_owned(), hash),
        None => all.remove(server),
    };
    let text = serde_json::to_string(&all).map_err(|e| Error::internal(e.to_string()))?;
    ops.store.catalog.settings.set(REGISTERED_COMMANDS, Some(text)).await
}

/// Returns the newest sessions that are offered in a conversation of an agent, for autocompletion. The numbers of the last history stay as they are.
pub async fn newest_sessions(ops: &Ops, viewer: ConversationKey, limit: u64) -> Result<Vec<Session>> {
    let scope = SessionScope::of(&ops.agents.conversations, viewer);
    let listing = SessionQuery {
        agent: Some(viewer.agent),
        conversation: scope.only(),
        hidden: scope.hidden(),
        limit,
        ..SessionQuery::default()
    };
    let (rows, short, _) = ops.store.catalog.sessions.list_with_short_ids(listing).await?;
    ops.sessions.describe_with_short_ids(rows, short).await
}

/// Waits until no summary of a session is in progress, and returns the session. `None` if the daemon stops.
pub async fn wait_for_summary(ops: &Ops, session: Uuid) -> Result<Option<Session>> {
    // Subscribes before the check, so that no event is missed in between.
    let (_, mut events) = subscribe(&ops.store.journal, SubscribeParams { after: None }).await?;
    while ops.summaries.is_in_flight(session) {
        loop {
            match events.next(&ops.store.journal).await {
                Some(SubscriptionItem::Event(event)) if event.kind == EventType::SummaryReady => break,
                Some(SubscriptionItem::Event(_)) => {}
                Some(SubscriptionItem::Lagged(_)) => break,
                None => return Ok(None),
            }
        }
    }
    match ops.store.catalog.sessions.get(session).await? {
        Some(row) => ops.sessions.describe(row).await.map(Some),
        None => Ok(None),
    }
}

/// Records in the audit log that a member is about to run an action, and which right permits it. If this fails, the
/// action must not run.
pub async fn audit_action(ops: &Ops, by: &Requester, agent: &AgentEntry, action: String, right: &str) -> Result<()> {
    let row = AuditDecision {
        at: ops.clock.now(),
        agent: agent.settings.id,
        agent_name: agent.settings.name.clone(),
        turn: None,
        action,
        decision: "allow".into(),
        rule: right.to_owned(),
        user: by.to_string(),
        old: None,
        new: None,
    };
    ops.store.catalog.audit.append(row).await
}
