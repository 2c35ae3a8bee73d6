//! Splits text into Discord messages. Pure.

mod code_block;
mod layout;
mod split;
mod tail;
#[cfg(test)]
mod tests;

pub use layout::{RenderedText, render_text};
pub use split::split;
pub use tail::tail;

/// Characters (code points) that a message holds.
pub const MAX_MESSAGE_CHARS: usize = 2000;
