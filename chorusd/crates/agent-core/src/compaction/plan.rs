//! Decides which messages leave a window.

use chorus_proto::{Role, WorkingSet};
use chorus_session::stored_message::StoredMessage;

use super::compact::without_derived;
use super::{CompactionMode, MIN_KEPT_MESSAGES, tokens_with_working_set};
use crate::window::working_set_block;

/// The working set may take this fraction (one quarter) of the window's tokens.
const WORKING_SET_DIVISOR: u64 = 4;

/// A planned compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionPlan {
    /// Index of the first message that leaves.
    pub from: usize,
    /// Index of the first message in the window afterwards.
    pub upto: usize,
    /// Tokens of the window before.
    pub(super) tokens_before: u64,
    /// Maximum tokens of the window.
    pub(super) limit: u64,
    /// Maximum tokens of what is derived from messages, including those that left earlier.
    pub(super) derived_limit: u64,
    /// The model refused the window as too long.
    pub(super) reduced: bool,
}

/// Plans the compaction of a window that starts at index `from` and may have `limit` tokens. Returns `None` if `wish`
/// does not ask for it or no turn can leave. The message `opened`, with which the running turn started, stays.
/// Deterministic. If there is nothing to compact, reads no more messages than the window may have.
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
    // Pinned facts and background, which no compaction shortens, reduce the limit, but by at most half.
    let (by_hand, block) = (shown(&without_derived(set)), shown(set));
    let limit_of_rest = limit.saturating_sub(by_hand).max(limit / 2);
    let is_long = || (limit_of_rest + by_hand).checked_sub(block).is_none_or(|most| exceeds(&record[from..], most));
    if wish == CompactionMode::Off || (wish == CompactionMode::IfLong && !is_long()) {
        return None;
    }
    let before = tokens_with_working_set(&record[from..], &working_set_block::fit_to_window(set, limit));
    // In mode `Now` the window is too long, whatever its estimate. Else it must not be too long again after one
    // message.
    let room = if wish == CompactionMode::Now { (limit / 4).min(before / 2) } else { limit_of_rest / 2 };
    let upto = find_window_start(record, (from, opened), room)?;
    let room = if wish == CompactionMode::Now { room } else { limit_of_rest } / WORKING_SET_DIVISOR;
    let reduced = wish == CompactionMode::Now;
    Some(CompactionPlan { from, upto, tokens_before: before, limit, derived_limit: room, reduced })
}

/// Returns true if messages have more than `most` tokens. Counts from the newest one and stops as soon as it is decided.
fn exceeds(messages: &[StoredMessage], most: u64) -> bool {
    let sum = messages.iter().rev().try_fold(0_u64, |sum, message| {
        let sum = sum + message.tokens();
        (sum <= most).then_some(sum)
    });
    sum.is_none()
}

/// Returns the index at which the window starts afterwards: the start of a turn, so that the last [`MIN_KEPT_MESSAGES`]
/// messages stay and have at most `room` tokens. If they have more, the start of a later turn, at the latest the
/// newest, and never after the message `opened`.
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
