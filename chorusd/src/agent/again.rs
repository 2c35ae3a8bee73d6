//! A turn that a crash cut off, begun again. Part of the state machine.

use chorus_proto::{ErrorKind, Role};
use uuid::Uuid;

use super::effect::{Beginning, Effect, Mark};
use super::event::Known;
use super::state::State;
use super::turn::Moment;
use crate::failure::Failure;
use crate::message::Stored;

/// The advice after a turn of a known key that ended without an answer.
const ENDED: &str =
    "what came is in the context; to have it done anew send it again, under another key where it had one";

/// What a turn begins again with.
#[derive(Debug)]
pub(super) struct Again {
    pub message: Stored,
    pub moment: Moment,
}

impl State {
    /// Goes on with the turn of a known key that was cut off when only its message was kept, which still is the last one; false where it cannot
    /// be. Once: one that is cut off again is not begun a third time.
    pub(super) fn goes_on(&mut self, known: &Known, effects: &mut Vec<Effect>) -> bool {
        let Some(again) = self.turn.as_mut().and_then(|turn| turn.again.take()) else { return false };
        let messages = self.context.as_ref().map(|context| &context.messages);
        let last = messages.and_then(|messages| messages.len().checked_sub(1));
        let at = last.filter(|at| messages.is_some_and(|messages| is_again(&messages[*at], &again.message)));
        if at.is_none() || known.answer.is_some() || self.unbegun.take_if(|unbegun| *unbegun == known.turn).is_none() {
            return false;
        }
        let begin = self.going_on();
        let Some((turn, begin)) = self.turn.as_mut().zip(begin) else { return false };
        turn.opened = at;
        let (facts, mark) = (turn.facts.clone(), Mark::Open { turn: turn.id, key: None });
        let begin = Beginning { agent: facts.id, ..begin };
        // The one that was cut off is closed: a crash in this one must find it open.
        self.keep(begin, &facts, Vec::new(), again.moment, Some(mark), effects);
        true
    }
}

/// The failure of a key whose turn ended without an answer.
pub(super) fn ended(turn: Uuid) -> Failure {
    Failure::new(ErrorKind::Interrupted, format!("the turn {turn} of this key ended without an answer")).hint(ENDED)
}

/// Whether a turn failed because that of its key ended before, without an answer.
pub fn has_ended(failure: &Failure) -> bool {
    failure.kind == ErrorKind::Interrupted && failure.hint.as_deref() == Some(ENDED)
}

/// Whether a message is the same as one that is kept, sent once more.
fn is_again(kept: &Stored, sent: &Stored) -> bool {
    let (Ok(kept), Ok(sent)) = (kept.to_message(), sent.to_message()) else { return false };
    kept.role == Role::User && kept.source == sent.source && kept.content == sent.content
}
