//! Estimates the number of tokens of texts, messages and requests. Every budget is based on this. What the provider
//! counted is known only after a call; `usage::Calibration` has the ratio of the two for each model.
//!
//! A text is estimated by its script (`text.rs`). Where only a length is known, four bytes are taken for a token.

use chorus_proto::{Attachment, Message, Role, SourceKind};

use crate::attachment_text;
use crate::stored_message::has_author_label;

mod text;

pub use text::millitokens_of_text;

/// Overhead of a piece of the system prompt.
const PIECE_OVERHEAD: u64 = 4;
/// Overhead of a message: `{"role":"assistant","content":""},`.
pub const MESSAGE_OVERHEAD: u64 = 8;
/// Overhead of a tool call besides its name and parameters: its id and the names of four fields.
const CALL_OVERHEAD: u64 = 28;
/// Overhead of a tool result: the id of its call, and the name of a field.
const RESULT_OVERHEAD: u64 = 12;
/// Tokens of an image of common size; providers count between 85 and 1,600.
const IMAGE_TOKENS: u64 = 1200;
/// Maximum bytes of an author's name, approximately.
const MAX_NAME_BYTES: usize = 64;
/// Tokens of the name, type and size of a file whose content no model reads.
const FILE_TOKENS: u64 = 20;

/// Returns the tokens of a text of `length` bytes whose script is not known.
#[must_use]
pub fn tokens_of_bytes(length: u64) -> u64 {
    length.div_ceil(4)
}

/// Returns the tokens of a text.
#[must_use]
pub fn tokens_of_text(text: &str) -> u64 {
    millitokens_of_text(text).div_ceil(1000)
}

/// The numbers on which the tokens of a message depend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessageSize {
    /// Thousandths of a token of the content, of the names and parameters of tool calls and of attached texts.
    pub text_millis: u64,
    pub calls: u64,
    /// Whether it is a tool result.
    pub is_result: bool,
    pub images: u64,
    /// Number of other attachments.
    pub files: u64,
}

impl MessageSize {
    /// Measures a message.
    #[must_use]
    pub fn of_message(message: &Message) -> Self {
        let mut parts = Self::of_text(message.role, &message.content);
        for call in &message.tool_calls {
            parts.add_call(&call.name, call.params.get());
        }
        for Attachment { media_type, data, .. } in &message.attachments {
            parts.add_attachment(media_type.as_deref(), data.as_ref().map_or(0, String::len));
        }
        if let Some(author) = &message.author {
            parts.add_author(message.role, message.source.as_ref().map(|source| source.kind), &author.name);
        }
        parts
    }

    /// Measures the text of a message.
    pub(crate) fn of_text(role: Role, content: &str) -> Self {
        let is_result = role == Role::ToolResult;
        Self { text_millis: millitokens_of_text(content), is_result, ..Self::default() }
    }

    /// Adds the author's name, if the window shows it.
    pub(crate) fn add_author(&mut self, role: Role, source: Option<SourceKind>, name: &str) {
        if has_author_label(role, source) {
            self.text_millis += millitokens_of_bytes(name.len().min(MAX_NAME_BYTES) as u64 + 3);
        }
    }

    /// Adds a tool call.
    pub(crate) fn add_call(&mut self, name: &str, params: &str) {
        self.calls += 1;
        self.text_millis += millitokens_of_text(name) + millitokens_of_text(params);
    }

    /// Adds an attachment with `encoded` characters of base64.
    pub(crate) fn add_attachment(&mut self, media_type: Option<&str>, encoded: usize) {
        if attachment_text::is_text(media_type) {
            self.text_millis += millitokens_of_bytes(attachment_text::shown_bytes(encoded));
        }
        let image = media_type.is_some_and(|kind| kind.starts_with("image/") && kind != "image/svg+xml");
        *(if image { &mut self.images } else { &mut self.files }) += 1;
    }

    /// Returns the tokens of its texts.
    #[must_use]
    pub fn text_tokens(self) -> u64 {
        self.text_millis.div_ceil(1000)
    }

    /// Returns the tokens of the whole message.
    #[must_use]
    pub fn tokens(self) -> u64 {
        let result = if self.is_result { RESULT_OVERHEAD } else { 0 };
        MESSAGE_OVERHEAD
            + result
            + self.text_tokens()
            + CALL_OVERHEAD * self.calls
            + IMAGE_TOKENS * self.images
            + FILE_TOKENS * self.files
    }
}

/// Returns the tokens of one piece of the system prompt.
#[must_use]
pub fn tokens_of_piece(text: &str) -> u64 {
    PIECE_OVERHEAD + tokens_of_text(text)
}

/// Returns the tokens of one piece of the system prompt of which only the length in bytes is known.
#[must_use]
pub fn tokens_of_unread_piece(length: u64) -> u64 {
    PIECE_OVERHEAD + tokens_of_bytes(length)
}

fn millitokens_of_bytes(length: u64) -> u64 {
    length * 250
}

#[cfg(test)]
mod tests;
