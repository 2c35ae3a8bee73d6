//! What slash commands need besides the verbs.

use std::collections::BTreeMap;

use chorus_proto::methods::events::SubscribeParams;
use chorus_proto::{EventType, Session};
use uuid::Uuid;

use crate::agent::agent_index::AgentEntry;
use crate::error::{Error, Result};
use crate::ops::events::subscribe::{SubscriptionItem, subscribe};
use crate::ops::{Ops, wire_types};
use crate::requester::Requester;
use crate::store::catalog::{AuditDecision, SessionQuery};

/// The setting that says which commands which server has.
const REGISTERED_COMMANDS: &str = "discord_commands";

/// What servers were told of the commands last: a hash of them, by `<application>:<server>`.
///
/// # Errors
/// A database that cannot be read.
pub async fn registered_hashes(ops: &Ops) -> Result<BTreeMap<String, String>> {
    let text = ops.store.catalog.setting(REGISTERED_COMMANDS).await?;
    // One that cannot be read only costs a request.
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

/// Notes what a server was told; `None` forgets it. For one at a time.
///
/// # Errors
/// A database that cannot be written.
pub async fn set_registered_hash(ops: &Ops, server: &str, hash: Option<String>) -> Result<()> {
    let mut all = registered_hashes(ops).await?;
    match hash {
        Some(hash) => all.insert(server.to_owned(), hash),
        None => all.remove(server),
    };
    let text = serde_json::to_string(&all).map_err(|e| Error::internal(e.to_string()))?;
    ops.store.catalog.set_setting(REGISTERED_COMMANDS, Some(text)).await
}

/// The newest sessions of an agent, for somebody to choose from. The numbers of the last history stay as they are.
///
/// # Errors
/// A database that cannot be read.
pub async fn newest_sessions(ops: &Ops, agent: Uuid, limit: u64) -> Result<Vec<Session>> {
    let listing = SessionQuery { agent: Some(agent), since: None, tag: None, offset: 0, limit };
    let (rows, short, _) = ops.store.catalog.sessions_with_short_ids(listing).await?;
    wire_types::sessions_with_short_ids(ops, rows, short).await
}

/// A session once no summary of it is on its way any more, whatever became of that; `None`: the daemon stops.
///
/// # Errors
/// A database that cannot be read.
pub async fn wait_for_summary(ops: &Ops, session: Uuid) -> Result<Option<Session>> {
    // Listening begins before looking: nothing can fall between the two.
    let (_, mut events) = subscribe(ops, SubscribeParams { after: None }).await?;
    while ops.registry.summaries.is_in_flight(session) {
        loop {
            match events.next(ops).await {
                Some(SubscriptionItem::Event(event)) if event.kind == EventType::SummaryReady => break,
                Some(SubscriptionItem::Event(_)) => {}
                Some(SubscriptionItem::Lagged(_)) => break,
                None => return Ok(None),
            }
        }
    }
    match ops.store.catalog.session(session).await? {
        Some(row) => wire_types::session(ops, row).await.map(Some),
        None => Ok(None),
    }
}

/// Writes down that somebody in a channel is about to have something done, and what lets them.
///
/// # Errors
/// What cannot be written down is not to be done.
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
    ops.store.catalog.append_audit_row(row).await
}
