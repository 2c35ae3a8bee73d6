//! The properties that hold in every state, and those that some state has.

use crate::action::list_actions;
use crate::setting::{Heartbeats, Setting};
use crate::state::{Heartbeat, Life, Node, Owner, Row, State, Work};

/// A statement about a state, with the name that the tests print.
pub type Property = (&'static str, fn(&Setting, &State) -> bool);

/// Properties that hold in every state.
pub const ALWAYS: [Property; 9] = [SEQ, WRITER, EPOCH, NO_FALL, ONCE, ACKNOWLEDGED, HOLDER, NOT_OVERTAKEN, SERVED];

/// No two writes of an agent have the same number.
pub const SEQ: Property = ("one write per seq", |_, state| state.rows.iter().all(has_one_write_per_seq));

/// In each epoch only its owner writes.
pub const WRITER: Property =
    ("the writes of an epoch come from its owner", |_, state| state.rows.iter().all(has_one_writer_per_epoch));

/// The row is in the epoch of a write when it is committed.
pub const EPOCH: Property = ("a write is accepted in the current epoch only", |_, state| {
    state.rows.iter().all(|row| row.entries().all(|entry| entry.epoch == entry.row_epoch))
});

/// The epochs of the writes in a log do not fall.
pub const NO_FALL: Property = ("the epochs of accepted writes never fall", |_, state| {
    state.rows.iter().all(|row| row.entries().is_sorted_by_key(|entry| entry.epoch))
});

/// A log has the messages of its client, none twice and none left out.
pub const ONCE: Property = ("each message is accepted once and in order", |_, state| {
    state.rows.iter().all(|row| row.entries().map(|entry| entry.message).eq(1..=row.next_seq()))
});

/// The log has every message that the client was told is in it.
pub const ACKNOWLEDGED: Property = ("what is acknowledged is accepted", |_, state| {
    state.rows.iter().all(|row| (1..=row.acknowledged).all(|message| row.has_message(message)))
});

/// A node that believes to own an agent in its current epoch does.
pub const HOLDER: Property =
    ("who holds the current epoch is the owner in the row", |_, state| holders_are_owners(state));

/// No node that sends its heartbeats is overtaken; only where heartbeats are in time and nothing is silent.
pub const NOT_OVERTAKEN: Property = ("a node that sends its heartbeats is not overtaken", |setting, state| {
    !is_orderly(setting) || !is_any_refused(state)
});

/// Each agent gets an owner that can write, once nothing fails.
pub const SERVED: Property = ("each agent is served in the end, once nothing fails", |setting, state| {
    !state.calm || is_served(setting, state) || !is_at_end(setting, state)
});

/// Returns true if each agent has an owner that knows it and can write, and nothing locks its row.
fn is_served(setting: &Setting, state: &State) -> bool {
    state.requests().count() == 0
        && (0..setting.agents).all(|agent| {
            let row = state.row(agent);
            row.owner.is_some_and(|owner| {
                let node = state.node(owner.node);
                let serves = node.life == Life::Running && node.is_connected() && !node.busy;
                serves && node.boot == owner.boot && node.held[usize::from(agent)] == row.epoch
            })
        })
}

/// Returns true if nothing more can happen.
fn is_at_end(setting: &Setting, state: &State) -> bool {
    let mut actions = Vec::new();
    list_actions(setting, state, &mut actions);
    actions.is_empty()
}

/// Returns what happens in some state of a setting.
#[must_use]
pub fn list_reachable(setting: &Setting) -> Vec<Property> {
    let mut possible: Vec<Property> = Vec::new();
    if setting.calm {
        return possible;
    }
    if setting.crashes > 0 {
        possible.push(("another node writes after a crash", |_, state| {
            writes_of_two(state, |node| node.life == Life::Down && node.heartbeat != Heartbeat::Ended)
        }));
        possible.push(("a node takes its agent back after a restart", |_, state| {
            let is_back = |row: &Row, by: Owner| row.owner.is_some_and(|it| it.node == by.node && it.boot > by.boot);
            state.rows.iter().any(|row| row.entries().any(|entry| is_back(row, entry.writer)))
        }));
    }
    if !is_orderly(setting) {
        possible.push(("an overtaken writer is refused", |_, state| is_any_refused(state)));
    }
    if setting.stops {
        possible.push(("an agent moves to another node at a stop", |_, state| {
            writes_of_two(state, |node| node.life == Life::Down && node.heartbeat == Heartbeat::Ended)
        }));
    } else {
        possible.push(("an agent is released", |_, state| {
            state.rows.iter().any(|row| row.owner.is_none() && row.next_seq() > 0)
        }));
    }
    possible
}

/// Returns true if heartbeats are never late and nothing is silent, so that no living node may be overtaken.
fn is_orderly(setting: &Setting) -> bool {
    setting.heartbeats == Heartbeats::OnTime && !setting.silences
}

fn has_one_write_per_seq(row: &Row) -> bool {
    row.entries().enumerate().all(|(i, entry)| row.entries().skip(i + 1).all(|other| other.seq != entry.seq))
}

fn has_one_writer_per_epoch(row: &Row) -> bool {
    let owner = row.owner.map(|owner| (row.epoch, owner));
    let mut writers = row.entries().map(|entry| (entry.epoch, entry.writer)).chain(owner);
    let all = writers.clone();
    writers.all(|(epoch, writer)| all.clone().all(|(other, of)| other != epoch || of == writer))
}

fn holders_are_owners(state: &State) -> bool {
    state.nodes.iter().zip(0..).all(|(node, id)| {
        node.held.iter().zip(&state.rows).all(|(&epoch, row)| {
            epoch == 0 || epoch < row.epoch || (epoch == row.epoch && row.owner == Some(state.process(id)))
        })
    })
}

fn is_any_refused(state: &State) -> bool {
    state.requests().any(|request| matches!(request.work, Work::Refused { .. }))
}

/// Returns true if two nodes wrote for an agent and the first of them is now in some condition.
fn writes_of_two(state: &State, is_now: fn(&Node) -> bool) -> bool {
    state.rows.iter().any(|row| {
        let mut writers = row.entries().map(|entry| entry.writer.node);
        let first = writers.next();
        first.is_some_and(|first| is_now(state.node(first)) && writers.any(|other| other != first))
    })
}
