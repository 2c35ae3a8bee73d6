//! The turn of a run.

use std::sync::Arc;

use chorus_agent_core::turn_sink::TurnListener;
use chorus_base::error::Result;
use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use chorus_catalog::ScheduleRow;
use chorus_proto::methods::schedule::{RunOutcome, RunRecord};
use chorus_proto::methods::send::{SendParams, SendResult, TurnEvent};
use chorus_proto::{ErrorKind, EventType, Source, SourceKind};
use chorus_session::conversation::ConversationKey;
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::conversation_origin;
use super::firing::record;
use crate::ops::Ops;
use crate::ops::agent::AgentResolver;
use crate::ops::conversations::Opener;
use crate::ops::send::{MessageOrigin, send_to_conversation};

/// Limit of the bytes of a reply in an event.
const MAX_REPLY_BYTES: usize = 16 << 10;

/// Limit of the bytes of an error that is recorded.
const MAX_ERROR_BYTES: usize = 400;

/// The permit of a run to work. A run that waits for an approval gives it to the others, and continues without one once it is decided.
#[derive(Debug, Clone)]
pub(super) struct RunPermit {
    pub permits: Arc<Semaphore>,
    pub permit: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl RunPermit {
    /// Waits for a permit if the run has none any more.
    async fn renew(&self) {
        if self.permit.lock().is_none() {
            let renewed = self.permits.clone().acquire_owned().await.ok();
            *self.permit.lock() = renewed;
        }
    }
}

/// Learns the id of the turn, and when it waits for an approval.
#[derive(Debug)]
struct RunListener {
    turn_id: Mutex<Option<Uuid>>,
    permit: RunPermit,
}

impl TurnListener for RunListener {
    fn try_send(&self, event: &TurnEvent) -> bool {
        match event {
            TurnEvent::Started { turn_id } => _ = self.turn_id.lock().get_or_insert(*turn_id),
            TurnEvent::Ask { .. } => drop(self.permit.permit.lock().take()),
            _ => {}
        }
        true
    }

    fn send_when_ready(&self, _: TurnEvent) {}
}

/// Carries out the pending run of a schedule, and the one that has come after it. Does not record a run that ends because the daemon
/// stops, or because another node takes the agent over: then it returns false, and the run is carried out again.
///
/// # Errors
/// Those of the store.
pub(super) async fn run_pending(
    ops: &Arc<Ops>,
    id: Uuid,
    permit: &RunPermit,
    stop: &CancellationToken,
) -> Result<bool> {
    let schedules = &ops.schedules;
    while let Some(row) = schedules.table.get(id).await? {
        let Some(due) = row.progress.pending_at else { return Ok(true) };
        permit.renew().await;
        let agent_name = ops.agents.by_id(row.agent).map(|entry| entry.settings.name.clone());
        let about = json!({"id": id, "name": row.name, "due_at": due});
        ops.registry.emit_event(EventType::ScheduleStarted, agent_name.clone(), conversation_name(ops, &row), about);
        let listener = Arc::new(RunListener { turn_id: Mutex::new(None), permit: permit.clone() });
        let sent = send(ops, &row, due, listener.clone()).await;
        if sent.is_err() && (stop.is_cancelled() || !ops.agent_resolver.claims.has(row.agent)) {
            return Ok(false);
        }
        if let Err(failure) = &sent
            && failure.kind == ErrorKind::StorageUnavailable
            && listener.turn_id.lock().is_none()
        {
            // The turn has not begun, and is sent again when the store is back.
            return Ok(false);
        }
        let mut about = json!({"id": id, "name": row.name, "due_at": due});
        let started = *listener.turn_id.lock();
        let (outcome, turn_id, error) = match sent {
            Ok(SendResult { reply, turn_id, .. }) => {
                about["reply"] = truncate(&reply, MAX_REPLY_BYTES).into();
                (RunOutcome::Ok, Some(turn_id), None)
            }
            Err(failure) => {
                tracing::info!(schedule = row.name, agent = ?agent_name, %failure, "a run of a schedule failed");
                let text = truncate(&failure.message, MAX_ERROR_BYTES);
                about["error"] = text.clone().into();
                (RunOutcome::Failed, started, Some(text))
            }
        };
        (about["outcome"], about["turn_id"]) = (json!(outcome), json!(turn_id));
        let ended = RunRecord { due_at: due, ended_at: schedules.clock.now(), outcome, turn_id, error };
        let recorded = schedules.change(id, |row| {
            if row.progress.pending_at != Some(due) {
                return Ok(false);
            }
            row.progress.pending_at = row.progress.overdue_at.take();
            record(&mut row.progress, ended.clone());
            Ok(true)
        });
        // Also if the schedule was removed: its turn has ended nevertheless.
        let is_recorded = recorded.await?.is_none_or(|(_, changed)| changed);
        if is_recorded {
            let conversation = conversation_name(ops, &row);
            ops.registry.emit_event(EventType::ScheduleFinished, agent_name, conversation, about);
        }
    }
    Ok(true)
}

/// Sends the message of a run, and waits for the end of its turn.
async fn send(ops: &Ops, row: &ScheduleRow, due: Timestamp, listener: Arc<dyn TurnListener>) -> Result<SendResult> {
    let agent = ops.agent_resolver.resolve_by_id(row.agent).await?;
    if let Some(failure) = ops.schedules.missing_model(&agent) {
        return Err(failure);
    }
    let opener = Opener { origin: Some(conversation_origin(row.id)), title: None };
    let name = format!("schedule-{}", row.name);
    let (conversation, is_new) = ops.agent_resolver.new_conversation(&agent, &name, opener).await?;
    let params = SendParams {
        text: row.message.clone(),
        key: Some(format!("schedule:{}:{}", row.id, due.as_nanosecond())),
        ..SendParams::default()
    };
    let origin = MessageOrigin {
        author: None,
        source: Source { kind: SourceKind::Agent, channel_id: None, message_id: None, format: None },
        // No person has requested the turn, so nothing is granted in it.
        requester: Requester::Nobody,
        is_resumption: true,
    };
    let sent = send_to_conversation(&ops.message_sender, conversation, params, origin, Some(listener)).await;
    if sent.is_err() && is_new {
        close_if_empty(&ops.agent_resolver, conversation).await;
    }
    sent
}

/// Closes the conversation of a schedule if nothing was said in it since it was saved.
pub(super) async fn close_if_empty(agents: &AgentResolver, conversation: ConversationKey) {
    if agents.has_messages(conversation) {
        return;
    }
    if let Err(failure) = agents.close_conversation(conversation).await {
        tracing::warn!(%failure, "cannot close the empty conversation of a schedule");
    }
}

fn conversation_name(ops: &Ops, row: &ScheduleRow) -> Option<String> {
    let known = ops.agents.conversations.by_origin(row.agent, &conversation_origin(row.id));
    known.map(|row| row.name.clone())
}

/// Returns the start of a text, with an ellipsis if it is longer.
fn truncate(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}
