//! What a model is shown of a conversation: the newest messages that fit, made legal for every provider. A pure function
//! of the record, which itself is never mended.

mod author_label;
mod memory_block;
mod repair;
mod selection;
mod shorten;
pub mod working_set_block;

use chorus_proto::Message;

use crate::message::StoredMessage;

pub use author_label::has_author_label;
pub use memory_block::{
    MAX_MEMORY_TOKENS, MAX_SHOWN_MEMORIES, MemoryBlock, MemoryEntry as RememberedEntry, build_memory_block,
};
pub use repair::{INTERRUPTED_RESULT, Repair, repair_messages};
pub use shorten::ShortenedMessage;

/// How much of a conversation may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowBudget {
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
    pub repairs: Vec<Repair>,
    /// Those that alone would be too much, and are cut.
    pub shortened: Vec<ShortenedMessage>,
}

/// Tokens of the messages that [`window`] chooses, without parsing any.
#[must_use]
pub fn tokens(record: &[StoredMessage], budget: WindowBudget) -> u64 {
    let sizes: Vec<u64> =
        selection::select_messages(record, budget).into_iter().map(|index| record[index].tokens()).collect();
    let most = shorten::max_message_tokens(sizes.iter().copied(), budget.tokens).unwrap_or(u64::MAX);
    sizes.into_iter().map(|size| size.min(most)).sum()
}

/// The window of a conversation. It is cut between turns, and never between a call and its results; it has the newest
/// message, whatever the budget; where the newest turn alone is too much, its longest messages are cut. Only the messages that are shown are parsed.
#[must_use]
pub fn build_window(record: &[StoredMessage], budget: WindowBudget) -> Window {
    let chosen = selection::select_messages(record, budget);
    let left_out = record.len() - chosen.len();
    // What the journal and the readers of session files took is a message.
    let shown = chosen
        .into_iter()
        .filter_map(|index| record[index].to_message().ok())
        .map(author_label::with_author_label)
        .collect();
    let (mut messages, mended) = repair_messages(shown);
    let shortened = shorten::shorten_messages(&mut messages, budget.tokens);
    Window { left_out, messages, repairs: mended, shortened }
}
