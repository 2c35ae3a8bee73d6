//! Splits text into Discord messages. Pure.

mod code_block;
mod live_message_tail;
mod messages_or_file;
mod split;
#[cfg(test)]
mod tests;

pub(crate) use live_message_tail::tail;
pub(crate) use messages_or_file::{RenderedText, render_text};
pub(crate) use split::split;

/// Characters (code points) that a message holds.
pub(crate) const MAX_MESSAGE_CHARS: usize = 2000;
