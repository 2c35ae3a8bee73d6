//! What an answer looks like in a channel.

use super::split::Parts;
use super::{MAX_MESSAGE_CHARS, split};

/// As many parts are a file instead.
const MIN_FILE_PARTS: usize = 5;
/// What is shown of the text in a file.
const MAX_EXCERPT_CHARS: usize = 1200;
/// What is said below that at most: a message also holds a note about the file, and one that it cannot be there.
const MAX_LAST_LINE_CHARS: usize = 500;
/// Bytes of a file; Discord takes some more.
const MAX_FILE_BYTES: usize = 8 << 20;
/// What is said where nothing was.
const EMPTY_TEXT: &str = "(no text)";

/// A text as it is posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenderedText {
    /// One message each; at least one.
    Messages(Vec<String>),
    /// A message with the whole as a file.
    File { beginning: String, file: Vec<u8> },
}

/// How `text` is posted.
#[must_use]
pub fn render_text(text: &str) -> RenderedText {
    let mut parts: Vec<String> =
        Parts::new(text, MAX_MESSAGE_CHARS).take(MIN_FILE_PARTS).map(|part| part.to_string()).collect();
    if parts.len() < MIN_FILE_PARTS {
        // Discord takes none that shows nothing.
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
        format!("-# This is the beginning of {count} characters; answer.md has the first 8 MiB.")
    } else {
        format!("-# This is the beginning; all of the {count} characters are in answer.md.")
    };
    RenderedText::File { beginning: format!("{}\n{note}", first.trim_end()), file: file[..end].to_vec() }
}

impl RenderedText {
    /// The same with `line` as the last thing that is read.
    #[must_use]
    pub fn with_last_line(self, line: &str) -> Self {
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
