//! Renders a text as messages, or as an excerpt with a file.

use super::split::Parts;
use super::{MAX_MESSAGE_CHARS, split};

/// A text that needs this many messages becomes a file.
const MIN_FILE_PARTS: usize = 5;
/// Characters of the excerpt above a file.
const MAX_EXCERPT_CHARS: usize = 1200;
/// Characters of the last line below the excerpt: the message also holds a note about the file, and possibly one that
/// it could not be attached.
const MAX_LAST_LINE_CHARS: usize = 500;
/// Bytes of a file; Discord accepts slightly more.
const MAX_FILE_BYTES: usize = 8 << 20;
/// Shown instead of an empty text.
const EMPTY_TEXT: &str = "(no text)";

/// A text as it is posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RenderedText {
    /// One message each; at least one.
    Messages(Vec<String>),
    /// An excerpt with the whole text as a file.
    File { beginning: String, file: Vec<u8> },
}

/// Renders `text` as messages or as a file.
#[must_use]
pub(crate) fn render_text(text: &str) -> RenderedText {
    let mut parts: Vec<String> =
        Parts::new(text, MAX_MESSAGE_CHARS).take(MIN_FILE_PARTS).map(|part| part.to_string()).collect();
    if parts.len() < MIN_FILE_PARTS {
        // Discord rejects blank messages.
        parts.retain(|part| !part.trim().is_empty());
        if parts.is_empty() {
            parts.push(EMPTY_TEXT.into());
        }
        return RenderedText::Messages(parts);
    }
    let file = text.as_bytes();
    let most = MAX_FILE_BYTES.min(text.len());
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let first = Parts::new(text, MAX_EXCERPT_CHARS).map(|part| part.to_string()).find(|part| !part.trim().is_empty());
    let first = first.unwrap_or_else(|| EMPTY_TEXT.into());
    let count = text.chars().count();
    let note = if end < text.len() {
        format!("-# Cut off: the first 8 MiB of {count} characters are in answer.md.")
    } else {
        format!("-# Cut off: all {count} characters are in answer.md.")
    };
    RenderedText::File { beginning: format!("{}\n{note}", first.trim_end()), file: file[..end].to_vec() }
}

impl RenderedText {
    /// Adds `line` at the end.
    #[must_use]
    pub(crate) fn with_last_line(self, line: &str) -> Self {
        match self {
            Self::Messages(mut parts) => {
                let last = parts.pop().unwrap_or_default();
                parts.extend(split(&format!("{}\n\n{line}", last.trim_end())));
                Self::Messages(parts)
            }
            Self::File { beginning, file } => {
                let line: String = line.chars().take(MAX_LAST_LINE_CHARS).collect();
                Self::File { beginning: format!("{beginning}\n{line}"), file }
            }
        }
    }
}
