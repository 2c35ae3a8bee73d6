//! Which messages leave a window.

use chorus_proto::{Role, WorkingSet};

use super::outcome::without_derived;
use super::{CompactionMode, MIN_KEPT_MESSAGES, tokens_with_working_set};
use crate::agent::window::working_set_block;
use crate::message::StoredMessage;

/// Of the tokens that the window may have, what the working set may take of them.
const WORKING_SET_DIVISOR: u64 = 4;

/// A compaction that is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionPlan {
    /// The messages from this one on leave.
    pub from: usize,
    /// The window begins with this one afterwards.
    pub upto: usize,
    /// Tokens of the window as it is.
    pub(super) tokens_before: u64,
    /// Tokens that it may have.
    pub(super) limit: u64,
    /// Tokens that what is kept of messages may have, those that left earlier included.
    pub(super) derived_limit: u64,
}

/// How a window is compacted that begins with the message `from` and may have `limit` tokens; `None` where it is not wished for or
/// no turn can leave. The message `opened` stays, which began the turn that runs. Deterministic. Looks at no more messages than the
/// window may show, where it is not compacted.
#[must_use]
pub fn plan_compaction(
    record: &[StoredMessage],
    (from, opened): (usize, usize),
    set: &WorkingSet,
    limit: u64,
    wish: CompactionMode,
) -> Option<CompactionPlan> {
    let from = from.min(record.len());
    let shown = |set: &WorkingSet| working_set_block::tokens(&working_set_block::fit_to_window(set, limit));
    // What no compaction makes shorter takes its room from the others, but not more than half.
    let (by_hand, block) = (shown(&without_derived(set)), shown(set));
    let limit_of_rest = limit.saturating_sub(by_hand).max(limit / 2);
    let is_long = || (limit_of_rest + by_hand).checked_sub(block).is_none_or(|most| exceeds(&record[from..], most));
    if wish == CompactionMode::Off || (wish == CompactionMode::IfLong && !is_long()) {
        return None;
    }
    let before = tokens_with_working_set(&record[from..], &working_set_block::fit_to_window(set, limit));
    // However short it seems, it is too long; else it is not to be so again after the next message.
    let room = if wish == CompactionMode::Now { (limit / 4).min(before / 2) } else { limit_of_rest / 2 };
    let upto = find_window_start(record, (from, opened), room)?;
    let room = if wish == CompactionMode::Now { room } else { limit_of_rest } / WORKING_SET_DIVISOR;
    Some(CompactionPlan { from, upto, tokens_before: before, limit, derived_limit: room })
}

/// Whether messages have more than `most` tokens; the newest are counted first, and no more than that takes.
fn exceeds(messages: &[StoredMessage], most: u64) -> bool {
    let sum = messages.iter().rev().try_fold(0_u64, |sum, message| {
        let sum = sum + message.tokens();
        (sum <= most).then_some(sum)
    });
    sum.is_none()
}

/// Where the window begins afterwards: with a turn, so that the last [`KEPT`] messages stay and have no more than `room` tokens; where
/// they have more, with a later turn, at the latest the newest, and never behind the message `opened`.
#[must_use]
pub fn find_window_start(record: &[StoredMessage], (from, opened): (usize, usize), room: u64) -> Option<usize> {
    let mut tokens = 0;
    let mut chosen = None;
    for index in (from + 1..record.len()).rev() {
        tokens += record[index].tokens();
        if record[index].role() != Role::User || index > opened {
            continue;
        }
        if chosen.is_some() && tokens > room {
            break;
        }
        chosen = Some(index);
        if record.len() - index >= MIN_KEPT_MESSAGES {
            break;
        }
    }
    chosen
}
