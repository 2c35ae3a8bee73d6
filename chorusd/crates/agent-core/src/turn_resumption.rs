//! Resuming a turn that a crash or an absence of the store interrupted before anything was done in it. Part of the state machine.

use chorus_base::error::{Error, Result};
use chorus_proto::{ErrorKind, Role};
use chorus_session::stored_message::StoredMessage;
use uuid::Uuid;

use super::effect::{ContextHead, Effect, TurnMarker};
use super::event::PriorTurn;
use super::interruption_reason::Interruption;
use super::state::State;
use super::turn::{EventTime, Turn, TurnRequest};

/// Hint for a known key whose turn ended without an answer.
const UNANSWERED_HINT: &str =
    "the partial reply was kept; to retry, send the message again (with a new idempotency key if it had one)";

/// The data with which an interrupted turn is resumed.
#[derive(Debug)]
pub(super) struct TurnResumption {
    pub message: StoredMessage,
    pub moment: EventTime,
}

/// How often a turn that crashes ended is resumed. One that ends the daemon each time must not do so for ever.
const MAX_CRASHES: u16 = 3;

/// First bit of the count of crashes in the last 16 bits of an id, and the bits of the other count.
const CRASH_SHIFT: u32 = 12;
const ABSENCES: u16 = (1 << CRASH_SHIFT) - 1;

/// A turn in which nothing was done but that its message was recorded: it can be resumed.
///
/// Each attempt has an id of its own, the one of the turn before it with other last two bytes: of these 16 bits, the upper four count
/// the crashes since the turn with the key, the others the times that the store was gone. So the open turn of the journal says how
/// often it was resumed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResumableTurn {
    turn: Uuid,
    /// The daemon ended in the turn.
    has_crashed: bool,
}

impl ResumableTurn {
    pub(super) const fn after_crash(turn: Uuid) -> Self {
        Self { turn, has_crashed: true }
    }

    /// Returns the id of the next attempt.
    fn next_attempt(self) -> Uuid {
        let (rest, counts) = split(self.turn);
        let next = if self.has_crashed {
            counts.wrapping_add(1 << CRASH_SHIFT)
        } else {
            (counts & !ABSENCES) | (counts.wrapping_add(1) & ABSENCES)
        };
        let mut bytes = [0; 16];
        bytes[..14].copy_from_slice(&rest);
        bytes[14..].copy_from_slice(&next.to_be_bytes());
        Uuid::from_bytes(bytes)
    }

    /// Returns true for the turn with the key, or an attempt to resume it, if it may be resumed once more.
    fn is_attempt_at(self, keyed: Uuid) -> bool {
        let ((this, counts), (keyed, first)) = (split(self.turn), split(keyed));
        let crashes = (counts >> CRASH_SHIFT).wrapping_sub(first >> CRASH_SHIFT) & (u16::MAX >> CRASH_SHIFT);
        this == keyed && crashes < MAX_CRASHES
    }
}

/// Splits the id of a turn into what all attempts have in common and the counts.
fn split(turn: Uuid) -> ([u8; 14], u16) {
    let [rest @ .., high, low] = turn.into_bytes();
    (rest, u16::from_be_bytes([high, low]))
}

impl State {
    /// Returns true if a turn that ends may be resumed, because the store could not be reached or accepted nothing, and nothing but its message
    /// was recorded.
    pub(super) fn may_resume(&self, turn: &Turn, outcome: &Result<String>) -> bool {
        let is_passing = |failure: &Error| matches!(failure.kind, ErrorKind::StorageUnavailable | ErrorKind::Busy);
        let may_be_wanted = turn.is_repeated && matches!(turn.interruption, None | Some(Interruption::StoreLost));
        let newest = self.context.as_ref().and_then(|context| context.messages.len().checked_sub(1));
        let is_unstarted = newest.is_some() && turn.first_message == newest;
        may_be_wanted && is_unstarted && outcome.as_ref().is_err_and(is_passing)
    }

    /// Lets a turn be resumed that may be.
    pub(super) fn let_resume_if_unstarted(&mut self, turn: &Turn, outcome: &Result<String>) {
        if self.may_resume(turn, outcome) {
            self.resumable_turn = Some(ResumableTurn { turn: turn.id, has_crashed: false });
        }
    }

    /// Returns true if a turn waits to be resumed that only the memory knows of.
    pub(super) fn has_turn_to_retry(&self) -> bool {
        let last = self.context.as_ref().and_then(|context| context.messages.last());
        self.resumable_turn.is_some_and(|left| !left.has_crashed) && last.is_some_and(|last| last.role() == Role::User)
    }

    /// Returns the id of the turn that a request starts, which may resume another one.
    pub(super) fn choose_turn_id(&self, request: &TurnRequest) -> Uuid {
        let last = self.context.as_ref().and_then(|context| context.messages.last());
        let is_last = request.resume_if_unstarted && last.is_some_and(|last| is_same_message(last, &request.message));
        self.resumable_turn.filter(|_| is_last).map_or(request.turn, ResumableTurn::next_attempt)
    }

    /// Resumes the turn of a known key if it was interrupted before anything but its message was recorded and that
    /// message is still the last one. Returns false if that is not so, or if it was resumed too often.
    pub(super) fn try_resume_turn(&mut self, known: &PriorTurn, effects: &mut Vec<Effect>) -> bool {
        let Some(again) = self.turn.as_mut().and_then(|turn| turn.resumption.take()) else { return false };
        let messages = self.context.as_ref().map(|context| &context.messages);
        let last = messages.and_then(|messages| messages.len().checked_sub(1));
        let at = last.filter(|at| messages.is_some_and(|messages| is_same_message(&messages[*at], &again.message)));
        if at.is_none()
            || known.result.is_some()
            || self.resumable_turn.take_if(|left| left.is_attempt_at(known.turn)).is_none()
        {
            return false;
        }
        let begin = self.live_head();
        let Some((turn, begin)) = self.turn.as_mut().zip(begin) else { return false };
        turn.first_message = at;
        let (settings, mark) = (turn.settings.clone(), TurnMarker::Open { turn: turn.id, key: None });
        let begin = ContextHead { agent: settings.id, ..begin };
        // The interrupted turn is recorded as closed. If the daemon crashes again it must find this one open.
        self.append_in_turn(begin, &settings, Vec::new(), again.moment, Some(mark), effects);
        true
    }
}

/// Returns the error for a key whose turn ended without an answer.
pub(super) fn unanswered_key_error(turn: Uuid) -> Error {
    Error::new(ErrorKind::Interrupted, format!("turn {turn} with this idempotency key ended without a reply"))
        .hint(UNANSWERED_HINT)
}

/// Whether a turn failed because an earlier turn with its key ended without an answer.
pub fn is_unanswered_key_error(failure: &Error) -> bool {
    failure.kind == ErrorKind::Interrupted && failure.hint.as_deref() == Some(UNANSWERED_HINT)
}

/// Whether a sent message is the same as a recorded one.
fn is_same_message(kept: &StoredMessage, sent: &StoredMessage) -> bool {
    let (Ok(kept), Ok(sent)) = (kept.to_message(), sent.to_message()) else { return false };
    kept.role == Role::User && kept.source == sent.source && kept.content == sent.content
}
