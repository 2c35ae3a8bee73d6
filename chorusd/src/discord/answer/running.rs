//! Turns that channels asked for, while they run: who may stop them, and who did.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chorus_proto::ErrorKind;
use chorus_proto::methods::send::CancelParams;
use uuid::Uuid;

use crate::discord::bridge::Bridge;
use crate::failure::{Failure, Result};
use crate::ops::discord::commands;
use crate::ops::select::meaning;
use crate::ops::send::cancel;
use crate::who::Requester;

/// Of which agent it was asked, and by whom.
#[derive(Debug, Clone)]
pub struct Asked {
    pub agent: Uuid,
    pub by: Requester,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Running(Mutex<HashMap<Uuid, Turn>>);

#[derive(Debug)]
struct Turn {
    asked: Asked,
    stopped_by: Option<String>,
}

impl Running {
    pub fn begins(&self, turn: Uuid, asked: &Asked) {
        self.turns().entry(turn).or_insert_with(|| Turn { asked: asked.clone(), stopped_by: None });
    }

    pub fn ended(&self, turn: Uuid) {
        self.turns().remove(&turn);
    }

    pub fn stopped_by(&self, turn: Uuid) -> Option<String> {
        self.turns().get(&turn)?.stopped_by.clone()
    }

    /// Notes who stops a turn; says of which agent it is, and whether somebody else asked for it.
    fn stop(&self, turn: Uuid, by: &Requester, any: bool) -> Result<(Uuid, bool)> {
        let mut turns = self.turns();
        let turn = turns.get_mut(&turn).ok_or_else(over)?;
        let foreign = !same(&turn.asked.by, by);
        if foreign && !any {
            return Err(Failure::new(ErrorKind::Denied, "only who asked for it can stop it")
                .hint("whoever may manage messages here, or has a role in `approvers`, can stop any"));
        }
        if turn.stopped_by.is_none() {
            turn.stopped_by = Some(name(by));
        }
        Ok((turn.asked.agent, foreign))
    }

    fn go_on(&self, turn: Uuid) {
        if let Some(turn) = self.turns().get_mut(&turn) {
            turn.stopped_by = None;
        }
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<Uuid, Turn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a turn that a channel asked for, or takes it back while it waits: what the Stop button does. `any`: whoever presses may stop turns
/// that others asked for.
///
/// # Errors
/// `denied`; what cannot be written down is not done; `not_found`: it is over, which it is after a restart, too.
pub async fn stop(bridge: &Bridge, turn: Uuid, by: &Requester, any: bool) -> Result<()> {
    let (agent, foreign) = bridge.running.stop(turn, by, any)?;
    let cancelled = async {
        let entry = bridge.ops.directory.by_id(agent).ok_or_else(over)?;
        if foreign {
            let action = format!("discord:stop:{turn}");
            commands::note(&bridge.ops, by, &entry, action, "Manage Messages or a role of `approvers`").await?;
        }
        let params = CancelParams { agent: Some(entry.facts.name.clone()), turn_id: Some(turn) };
        meaning(agent, cancel::cancel(&bridge.ops, params)).await
    };
    let cancelled = cancelled.await;
    if !matches!(&cancelled, Ok(cancelled) if cancelled.turn_id.is_some()) {
        bridge.running.go_on(turn);
    }
    cancelled?.turn_id.map(drop).ok_or_else(over)
}

fn over() -> Failure {
    Failure::new(ErrorKind::NotFound, "that turn is over").hint("there is nothing to stop any more")
}

/// A person is known by the id: names and roles change.
fn same(one: &Requester, other: &Requester) -> bool {
    match (one, other) {
        (Requester::Person { id, .. }, Requester::Person { id: other, .. }) => id == other,
        (one, other) => one == other,
    }
}

fn name(by: &Requester) -> String {
    match by {
        Requester::Person { name, .. } => name.clone(),
        other => other.to_string(),
    }
}
