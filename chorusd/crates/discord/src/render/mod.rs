//! Splits text into Discord messages. Pure.

mod code_block;
mod layout;
mod split;
mod tail;
#[cfg(test)]
mod tests;

pub(crate) use layout::{RenderedText, render_text};
pub(crate) use split::split;
pub(crate) use tail::tail;

/// Characters (code points) that a message holds.
pub(crate) const MAX_MESSAGE_CHARS: usize = 2000;
