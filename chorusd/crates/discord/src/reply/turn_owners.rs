//! Running turns that were requested in channels: who may stop them, and who did.

use std::collections::HashMap;

use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::Ops;
use chorus_engine::ops::conversations::ConversationKey;
use chorus_engine::ops::discord::command_support;
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_engine::ops::send::cancel;
use chorus_proto::ErrorKind;
use chorus_proto::methods::send::CancelParams;
use uuid::Uuid;

use crate::conversations::conversation_param;

/// The conversation of a turn and the person who requested it.
#[derive(Debug, Clone)]
pub(crate) struct TurnOwner {
    pub conversation: ConversationKey,
    pub by: Requester,
}

/// All running turns that channels requested, by their id.
#[derive(Debug, Default)]
pub(crate) struct TurnOwners(Mutex<HashMap<Uuid, RunningTurn>>);

#[derive(Debug)]
struct RunningTurn {
    owner: TurnOwner,
    stopped_by: Option<String>,
}

impl TurnOwners {
    pub(crate) fn insert(&self, turn: Uuid, asked: &TurnOwner) {
        self.0.lock().entry(turn).or_insert_with(|| RunningTurn { owner: asked.clone(), stopped_by: None });
    }

    pub(crate) fn contains(&self, turn: Uuid) -> bool {
        self.0.lock().contains_key(&turn)
    }

    pub(crate) fn remove(&self, turn: Uuid) {
        self.0.lock().remove(&turn);
    }

    pub(crate) fn stopped_by(&self, turn: Uuid) -> Option<String> {
        self.0.lock().get(&turn)?.stopped_by.clone()
    }

    /// Records who stops a turn. Returns its conversation and whether somebody else requested it. `any`: the person may stop
    /// turns of others.
    fn mark_stopped(&self, turn: Uuid, by: &Requester, any: bool) -> Result<(ConversationKey, bool)> {
        let mut turns = self.0.lock();
        let turn = turns.get_mut(&turn).ok_or_else(turn_over_error)?;
        let foreign = !is_same_person(&turn.owner.by, by);
        if foreign && !any {
            return Err(foreign_turn_error());
        }
        if turn.stopped_by.is_none() {
            turn.stopped_by = Some(display_name(by));
        }
        Ok((turn.owner.conversation, foreign))
    }

    fn clear_stopped(&self, turn: Uuid) {
        if let Some(turn) = self.0.lock().get_mut(&turn) {
            turn.stopped_by = None;
        }
    }
}

/// Stops a turn that a channel requested, or takes it back while it is queued. This is what the Stop button does.
/// `any`: the person may stop turns of others.
///
/// # Errors
/// `denied`. `not_found`: the turn is over, which all turns are after a restart. If the audit log cannot be written,
/// its error, and the turn is not stopped.
pub(crate) async fn stop_turn(
    ops: &Ops,
    running_turns: &TurnOwners,
    turn: Uuid,
    by: &Requester,
    any: bool,
) -> Result<()> {
    let (conversation, foreign) = running_turns.mark_stopped(turn, by, any)?;
    let cancelled = async {
        let entry = ops.agents.by_id(conversation.agent).ok_or_else(turn_over_error)?;
        cancel_turn(ops, &entry, conversation, turn, by, foreign).await
    };
    cancelled.await.inspect_err(|_| running_turns.clear_stopped(turn))
}

/// Stops the running turn of a conversation, requested in a channel or elsewhere. This is what `/cancel` does. `any`: the
/// person may stop turns of others.
///
/// # Errors
/// As [`stop_turn`].
pub(crate) async fn stop_running_turn(
    ops: &Ops,
    running_turns: &TurnOwners,
    (agent, conversation): (&AgentEntry, ConversationKey),
    turn: Uuid,
    by: &Requester,
    any: bool,
) -> Result<()> {
    if running_turns.contains(turn) {
        return stop_turn(ops, running_turns, turn, by, any).await;
    }
    if !any {
        return Err(foreign_turn_error());
    }
    cancel_turn(ops, agent, conversation, turn, by, true).await
}

/// Cancels a turn. That of somebody else (`foreign`) is recorded in the audit log first.
async fn cancel_turn(
    ops: &Ops,
    agent: &AgentEntry,
    conversation: ConversationKey,
    turn: Uuid,
    by: &Requester,
    foreign: bool,
) -> Result<()> {
    if foreign {
        let action = format!("discord:stop:{turn}");
        command_support::audit_action(ops, by, agent, action, "Manage Messages or an approver role").await?;
    }
    let params = CancelParams {
        conversation: conversation_param(conversation),
        agent: Some(agent.settings.name.clone()),
        turn_id: Some(turn),
    };
    let cancelled = cancel::cancel(&ops.agent_resolver, &ops.registry, params);
    let cancelled = with_expected_agent(agent.settings.id, cancelled).await?;
    cancelled.turn_id.map(drop).ok_or_else(turn_over_error)
}

fn foreign_turn_error() -> Error {
    Error::new(ErrorKind::Denied, "You cannot stop another person's turn")
        .hint("you need Manage Messages or an approver role")
}

fn turn_over_error() -> Error {
    Error::new(ErrorKind::NotFound, "This turn has already ended")
}

/// Compares people by id, since names and roles change.
fn is_same_person(one: &Requester, other: &Requester) -> bool {
    match (one, other) {
        (Requester::Person { id, .. }, Requester::Person { id: other, .. }) => id == other,
        (one, other) => one == other,
    }
}

fn display_name(by: &Requester) -> String {
    match by {
        Requester::Person { name, .. } => name.clone(),
        other => other.to_string(),
    }
}
