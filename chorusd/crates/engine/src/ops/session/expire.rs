//! `session.expire`: moves sessions that were not used for long to the trash, on request, or once a day if the
//! configuration has a retention time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_catalog::SessionRow;
use chorus_config::{Config, format_days, parse_duration, validate_retention};
use chorus_proto::EventType;
use chorus_proto::methods::session::{ExpireParams, ExpireResult, ExpiredSession};
use jiff::Timestamp;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::SessionTrash;
use super::daily::repeat_daily;
use crate::agent::agent_index::AgentIndex;
use crate::ops::agent::AgentResolver;
use crate::ops::settings::EffectiveConfig;

/// The limit on sessions per call.
const MAX_SESSIONS: u64 = 1_000;
/// An upper bound for the bytes of a session in the reply.
const MAX_ENTRY_BYTES: usize = 1 << 10;

/// The sessions that are unused.
#[derive(Debug)]
pub(super) struct UnusedSessions {
    /// A session is unused if its last use was before this time.
    pub before: Timestamp,
    /// The longest unused first.
    pub ids: Vec<Uuid>,
    /// The number of sessions that are kept because live contexts refer to them.
    in_use: u64,
}

/// Moves sessions that were unused for the requested or configured time to the trash; in a dry run only lists them.
///
/// # Errors
/// `agent_not_found`, `invalid_params`, `disk_full`, `storage_failed`; sessions that were moved before stay in the
/// trash.
pub async fn expire(
    agents: &AgentResolver,
    trash: &SessionTrash,
    config: &EffectiveConfig,
    params: ExpireParams,
) -> Result<ExpireResult> {
    let agent = match params.agent.as_deref() {
        Some(name) => Some(agents.resolve(Some(name)).await?.settings.id),
        None => None,
    };
    let requested_age = params.unused_for.as_deref().map(parse_age).transpose()?;
    if params.limit == Some(0) {
        return Err(Error::invalid("`limit` must be at least 1").hint(format!("the default is {MAX_SESSIONS}")));
    }
    if !params.dry_run && params.offset.is_some() {
        return Err(Error::invalid("`offset` requires a dry run").hint("to process the rest, repeat the call"));
    }
    let config = config.current();
    let Some(age) = requested_age.or(config.sessions_unused_for) else {
        return Ok(ExpireResult { unused_for: None, sessions: Vec::new(), kept: 0, left: 0 });
    };
    let due = find_unused(trash, agent, age).await?;
    let max_entries = (config.max_frame / MAX_ENTRY_BYTES).max(1) as u64;
    let limit = as_index(params.limit.unwrap_or(MAX_SESSIONS).min(MAX_SESSIONS).min(max_entries));
    let offset = as_index(params.offset.unwrap_or(0)).min(due.ids.len());
    let page = due.ids.iter().skip(offset).take(limit);
    let left = (due.ids.len() - offset - page.len()) as u64;
    let mut sessions = Vec::new();
    for id in page {
        let expired = match params.dry_run {
            true => {
                trash.store.catalog.sessions.get(*id).await?.map(|row| to_expired_session(&trash.agents, row, None))
            }
            false => expire_session(trash, *id, due.before).await?,
        };
        sessions.extend(expired);
    }
    Ok(ExpireResult { unused_for: Some(format_days(age)), sessions, kept: due.in_use, left })
}

fn parse_age(text: &str) -> Result<Duration> {
    let read = parse_duration(text).and_then(|age| validate_retention(age).map_err(|e| format!("`unused_for` {e}")));
    read.map_err(|e| Error::invalid(e).hint("for example 30d or 12w"))
}

fn as_index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Finds the sessions of `agent`, or of all agents, that were not used for `age`.
pub(super) async fn find_unused(trash: &SessionTrash, agent: Option<Uuid>, age: Duration) -> Result<UnusedSessions> {
    let before = trash.clock.now().checked_sub(age).unwrap_or(Timestamp::MIN);
    let mut unused = trash.store.catalog.sessions.list_unused_since(before).await?;
    // Sessions of destroyed agents are in the trash already.
    unused.retain(|(_, _, of)| agent.is_none_or(|agent| agent == *of) && trash.agents.by_id(*of).is_some());
    unused.sort_unstable();
    let in_use = trash.registry.sessions_in_use();
    let all = unused.len();
    let ids: Vec<Uuid> = unused.into_iter().map(|(_, id, _)| id).filter(|id| !in_use.contains(id)).collect();
    Ok(UnusedSessions { before, in_use: (all - ids.len()) as u64, ids })
}

/// Moves a session to the trash, unless it was used or deleted meanwhile.
async fn expire_session(trash: &SessionTrash, id: Uuid, before: Timestamp) -> Result<Option<ExpiredSession>> {
    if trash.store.bodies.is_some()
        && let Some(row) = trash.store.catalog.sessions.get(id).await?
    {
        trash.fetch_file(&row).await?;
    }
    // The locks are acquired for each session, so that other requests wait for one session only.
    let _no_restores = trash.sessions_lock.write().await;
    let _no_changes = trash.store.files.change_lock.lock().await;
    let Some(row) = trash.store.catalog.sessions.get_unused_since(id, before).await? else { return Ok(None) };
    if trash.registry.sessions_in_use().contains(&id) || trash.agents.by_id(row.header.agent_id).is_none() {
        return Ok(None);
    }
    trash.require_file(&row).await?;
    let trashed = trash.move_in(&row, || trash.store.catalog.sessions.delete(id)).await?;
    tracing::info!(
        agent = %row.header.agent_name,
        session = %row.header.session_id,
        last_used_at = %row.last_used_at,
        "session expired"
    );
    Ok(Some(to_expired_session(&trash.agents, row, trashed.map(|entry| entry.id))))
}

fn to_expired_session(agents: &AgentIndex, row: SessionRow, trash: Option<String>) -> ExpiredSession {
    let agent = agents.by_id(row.header.agent_id);
    ExpiredSession {
        id: row.header.id,
        session_id: row.header.session_id,
        agent_name: agent.map_or(row.header.agent_name, |agent| agent.settings.name.clone()),
        last_used_at: row.last_used_at,
        message_count: row.header.message_count,
        trash,
    }
}

/// Runs now and once a day until `stop` is cancelled; does nothing without a configured retention time.
pub async fn run_daily(trash: Arc<SessionTrash>, config: Arc<EffectiveConfig>, stop: CancellationToken) {
    let age = |config: &Config| config.sessions_unused_for;
    repeat_daily(&trash.clock, &config, &stop, age, |age, stop| {
        let trash = &trash;
        Box::pin(async move { expire_all(trash, age, &stop).await })
    })
    .await;
}

/// Moves all unused sessions. Those that cannot be moved are tried again by the next run. Posts a notice for each agent
/// with the number of moved sessions.
async fn expire_all(trash: &SessionTrash, age: Duration, stop: &CancellationToken) {
    let due = match find_unused(trash, None, age).await {
        Ok(due) => due,
        Err(failure) => {
            tracing::warn!(%failure, "cannot find the unused sessions");
            return;
        }
    };
    let mut counts = BTreeMap::<String, u64>::new();
    let (mut failed, mut why) = (0_u64, None);
    for id in due.ids {
        if stop.is_cancelled() {
            break;
        }
        match expire_session(trash, id, due.before).await {
            Ok(Some(session)) => *counts.entry(session.agent_name).or_default() += 1,
            Ok(None) => {}
            Err(failure) => {
                failed += 1;
                why.get_or_insert(failure);
            }
        }
    }
    if let Some(failure) = why {
        tracing::warn!(failed, %failure, "cannot move unused sessions to the trash; retrying tomorrow");
    }
    let age = format_days(age);
    for (agent, count) in counts {
        let moved = if count == 1 { "1 session that was".into() } else { format!("{count} sessions that were") };
        let text = format!("Moved {moved} not used for {age} to the trash.");
        trash.registry.emit_event(EventType::Notice, Some(agent), None, json!({"text": text}));
    }
}
