//! What an answer looks like in a channel.

use super::split::Parts;
use super::{MOST, split};

/// As many parts are a file instead.
const FILE: usize = 5;
/// What is shown of the text in a file.
const BEGINNING: usize = 1500;
/// Bytes of a file; Discord takes some more.
const MOST_BYTES: usize = 8 << 20;
/// What is said where nothing was.
const NOTHING: &str = "(no text)";

/// A text as it is posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// One message each; at least one.
    Parts(Vec<String>),
    /// A message with the whole as a file.
    File { beginning: String, file: Vec<u8> },
}

/// How `text` is posted.
#[must_use]
pub fn shown(text: &str) -> Shown {
    let mut parts: Vec<String> = Parts::new(text, MOST).take(FILE).map(|part| part.to_string()).collect();
    if parts.len() < FILE {
        // Discord takes none that shows nothing.
        parts.retain(|part| !part.trim().is_empty());
        if parts.is_empty() {
            parts.push(NOTHING.into());
        }
        return Shown::Parts(parts);
    }
    let file = text.as_bytes();
    let most = text.len().min(MOST_BYTES);
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let first = Parts::new(text, BEGINNING).map(|part| part.to_string()).find(|part| !part.trim().is_empty());
    let first = first.unwrap_or_else(|| NOTHING.into());
    let count = text.chars().count();
    let note = if end < text.len() {
        format!("-# This is the beginning of {count} characters; answer.md has the first 8 MiB.")
    } else {
        format!("-# This is the beginning; all of the {count} characters are in answer.md.")
    };
    Shown::File { beginning: format!("{}\n{note}", first.trim_end()), file: file[..end].to_vec() }
}

impl Shown {
    /// The same with `line` as the last thing that is read.
    #[must_use]
    pub fn ending(self, line: &str) -> Self {
        match self {
            Self::Parts(mut parts) => {
                let last = parts.pop().unwrap_or_default();
                parts.extend(split(&format!("{}\n\n{line}", last.trim_end())));
                Self::Parts(parts)
            }
            Self::File { beginning, file } => {
                let room = MOST - beginning.chars().count() - 1;
                let line: String = line.chars().take(room).collect();
                Self::File { beginning: format!("{beginning}\n{line}"), file }
            }
        }
    }
}
