//! Estimates the number of tokens of texts, messages and requests from their length. Every budget is based on this. The
//! provider's own count is known only after a call; `usage::Calibration` has the ratio of the two for each model.
//!
//! A token is assumed to be four bytes of UTF-8: four letters of English, two of Greek or Cyrillic, and a bit more than
//! one character of Chinese, Japanese or Korean. That is about what the vocabularies in use achieve.

use chorus_proto::{Attachment, Message, Role, SourceKind};

use crate::attachment_text;
use crate::stored_message::has_author_label;

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

/// Returns the tokens of a text of `length` bytes.
#[must_use]
pub fn tokens_of_bytes(length: u64) -> u64 {
    length.div_ceil(4)
}

/// Returns the tokens of a text.
#[must_use]
pub fn tokens_of_text(text: &str) -> u64 {
    tokens_of_bytes(text.len() as u64)
}

/// Returns the bytes of a text as the content of a JSON string.
#[must_use]
pub(crate) fn json_escaped_len(text: &str) -> u64 {
    let more = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 1,
        0..0x20 => 5,
        _ => 0,
    };
    text.len() as u64 + text.bytes().map(more).sum::<u64>()
}

/// The numbers on which the tokens of a message depend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessageSize {
    /// Bytes of the content and of the names and parameters of tool calls, as escaped in JSON. Parameters are JSON
    /// within a JSON string, so their quotes and line ends count twice.
    pub bytes: u64,
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
        let is_result = message.role == Role::ToolResult;
        let mut parts = Self { bytes: json_escaped_len(&message.content), is_result, ..Self::default() };
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

    /// Adds the author's name, if the window shows it.
    pub(crate) fn add_author(&mut self, role: Role, source: Option<SourceKind>, name: &str) {
        if has_author_label(role, source) {
            self.bytes += name.len().min(MAX_NAME_BYTES) as u64 + 3;
        }
    }

    /// Adds a tool call.
    pub(crate) fn add_call(&mut self, name: &str, params: &str) {
        self.calls += 1;
        self.bytes += name.len() as u64 + json_escaped_len(params);
    }

    /// Adds an attachment with `encoded` characters of base64.
    pub(crate) fn add_attachment(&mut self, media_type: Option<&str>, encoded: usize) {
        if attachment_text::is_text(media_type) {
            self.bytes += attachment_text::shown_bytes(encoded);
        }
        let image = media_type.is_some_and(|kind| kind.starts_with("image/") && kind != "image/svg+xml");
        *(if image { &mut self.images } else { &mut self.files }) += 1;
    }

    /// Returns the tokens of the whole message.
    #[must_use]
    pub fn tokens(self) -> u64 {
        let result = if self.is_result { RESULT_OVERHEAD } else { 0 };
        MESSAGE_OVERHEAD
            + result
            + tokens_of_bytes(self.bytes)
            + CALL_OVERHEAD * self.calls
            + IMAGE_TOKENS * self.images
            + FILE_TOKENS * self.files
    }
}

/// Returns the tokens of one piece of the system prompt of `length` bytes.
#[must_use]
pub fn tokens_of_piece(length: u64) -> u64 {
    PIECE_OVERHEAD + tokens_of_bytes(length)
}

#[cfg(test)]
mod tests;
