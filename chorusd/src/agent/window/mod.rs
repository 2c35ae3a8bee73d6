//! What a model is shown of a conversation: the newest messages that fit, made legal for every provider. A pure function
//! of the record, which itself is never mended.

pub mod block;
mod cut;
mod mend;
mod remembered;
mod shorten;
mod speaker;

use chorus_proto::Message;

use crate::message::Stored;

pub use mend::{INTERRUPTED, Mended, mend};
pub use remembered::{Entry as RememberedEntry, MOST_REMEMBERED, REMEMBERED_TOKENS, Remembered, remembered};
pub use shorten::Shortened;
pub use speaker::is_named;

/// How much of a conversation may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub messages: usize,
    /// As [`crate::estimate`] counts them.
    pub tokens: u64,
}

/// What is shown.
#[derive(Debug, Clone)]
pub struct Window {
    /// Messages of the record that are left out: all before some turn, or where the newest turn alone is too much, what
    /// stands between its first message and the last ones.
    pub left_out: usize,
    /// A user message first; each call followed by its result. Every provider can be sent this. What somebody in a channel says begins with
    /// their name.
    pub messages: Vec<Message>,
    /// Where that is not what the record says.
    pub mended: Vec<Mended>,
    /// Those that alone would be too much, and are cut.
    pub shortened: Vec<Shortened>,
}

/// Tokens of the messages that [`window`] chooses, without parsing any.
#[must_use]
pub fn tokens(record: &[Stored], budget: Budget) -> u64 {
    let sizes: Vec<u64> = cut::cut(record, budget).into_iter().map(|index| record[index].tokens()).collect();
    let most = shorten::cap(sizes.iter().copied(), budget.tokens).unwrap_or(u64::MAX);
    sizes.into_iter().map(|size| size.min(most)).sum()
}

/// The window of a conversation. It is cut between turns, and never between a call and its results; it has the newest
/// message, whatever the budget; where the newest turn alone is too much, its longest messages are cut. Only the messages that are shown are parsed.
#[must_use]
pub fn window(record: &[Stored], budget: Budget) -> Window {
    let chosen = cut::cut(record, budget);
    let left_out = record.len() - chosen.len();
    // What the journal and the readers of session files took is a message.
    let shown = chosen.into_iter().filter_map(|index| record[index].to_message().ok()).map(speaker::named).collect();
    let (mut messages, mended) = mend(shown);
    let shortened = shorten::shorten(&mut messages, budget.tokens);
    Window { left_out, messages, mended, shortened }
}
