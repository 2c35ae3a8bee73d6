//! Builds windows: the newest messages of a conversation that fit, in a form that every provider accepts. A pure
//! function of the messages, which are not changed themselves.

mod author_label;
pub(crate) mod carried_items;
mod memory_block;
mod recalled_block;
mod repair;
mod selection;
mod shorten;
pub mod working_set_block;

use chorus_proto::Message;
use chorus_session::stored_message::StoredMessage;

pub use carried_items::{CondensedItems, MAX_CARRIED_ITEMS, cap as cap_carried_items};
pub use memory_block::{
    MAX_MEMORY_TOKENS, MAX_SHOWN_MEMORIES, MemoryBlock, MemoryEntry as RememberedEntry, build_memory_block,
};
pub use repair::{INTERRUPTED_RESULT, Repair, repair_messages};
pub use shorten::ShortenedMessage;

/// Limits of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowBudget {
    pub messages: usize,
    /// Tokens as [`chorus_session::token_estimate`] counts them.
    pub tokens: u64,
}

/// The messages to send to a model.
#[derive(Debug, Clone)]
pub struct Window {
    /// Number of messages left out: all before some turn or, if the newest turn alone exceeds the budget, those between
    /// its first message and the last ones.
    pub left_out: usize,
    /// Starts with a user message; each tool call is followed by its result. Messages from a Discord channel start with
    /// their author's name.
    pub messages: Vec<Message>,
    /// How the messages differ from those of the conversation.
    pub repairs: Vec<Repair>,
    /// Messages that were too long and were shortened.
    pub shortened: Vec<ShortenedMessage>,
}

/// Returns the tokens of the messages that [`build_window`] would choose, without parsing any.
#[must_use]
pub fn tokens(record: &[StoredMessage], budget: WindowBudget) -> u64 {
    let sizes: Vec<u64> =
        selection::select_messages(record, budget).into_iter().map(|index| record[index].tokens()).collect();
    let most = shorten::max_message_tokens(sizes.iter().copied(), budget.tokens).unwrap_or(u64::MAX);
    sizes.into_iter().map(|size| size.min(most)).sum()
}

/// Builds the window of a conversation. It is cut between turns, and never between a tool call and its results. It has
/// the newest message, whatever the budget; if the newest turn alone exceeds the budget, its longest messages are
/// shortened. Parses only the chosen messages.
#[must_use]
pub fn build_window(record: &[StoredMessage], budget: WindowBudget) -> Window {
    let chosen = selection::select_messages(record, budget);
    let left_out = record.len() - chosen.len();
    // The journal and the session reader accept only valid messages, so parsing cannot fail.
    let shown = chosen
        .into_iter()
        .filter_map(|index| record[index].to_message().ok())
        .map(author_label::with_author_label)
        .collect();
    let (mut messages, mended) = repair_messages(shown);
    let shortened = shorten::shorten_messages(&mut messages, budget.tokens);
    Window { left_out, messages, repairs: mended, shortened }
}
