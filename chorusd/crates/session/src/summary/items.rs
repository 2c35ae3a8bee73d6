//! Collects items for a working set: removes duplicates, truncates long texts, and records the message that each item
//! came from.

use std::collections::HashSet;

use chorus_proto::{Item, ItemSource};
use sha2::{Digest as _, Sha256};

use super::item_marker::strip_markers;
use super::text_limit::truncate_chars;

/// Length of the longest item, in characters.
const MAX_ITEM_CHARS: usize = 240;

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Topic,
    Fact,
    Decision,
    OpenTask,
    File,
    Conflict,
}

impl ItemKind {
    fn id_prefix(self) -> char {
        match self {
            Self::Topic => 't',
            Self::Fact => 'a',
            Self::Decision => 'd',
            Self::OpenTask => 'o',
            Self::File => 'f',
            Self::Conflict => 'c',
        }
    }
}

/// Items of one kind from one source.
pub(super) struct ItemList {
    kind: ItemKind,
    source: ItemSource,
    known: HashSet<String>,
    pub items: Vec<Item>,
    most: usize,
}

impl ItemList {
    /// Creates an empty list that rejects items in `known` and in `closed`, and holds at most `most`.
    pub(super) fn new(kind: ItemKind, source: ItemSource, known: &[Item], closed: &[Item], most: usize) -> Self {
        let known = known.iter().chain(closed).map(|item| dedup_key(kind, &item.text)).collect();
        Self { kind, source, known, items: Vec::new(), most }
    }

    pub(super) fn is_full(&self) -> bool {
        self.items.len() >= self.most
    }

    /// Adds an item that `message` names, unless the list is full or contains it.
    pub(super) fn add(&mut self, text: &str, message: &str) {
        let text = truncate_chars(text.trim(), MAX_ITEM_CHARS);
        if self.is_full() || text.is_empty() || !self.known.insert(dedup_key(self.kind, &text)) {
            return;
        }
        let id = item_id(self.kind, message, &text);
        self.items.push(Item { id, text, source: self.source, message_id: Some(message.to_owned()) });
    }
}

/// Returns the key by which items of a kind are compared. Paths are compared exactly: `Makefile` and `makefile` are two
/// files.
fn dedup_key(kind: ItemKind, text: &str) -> String {
    match kind {
        ItemKind::File => text.trim().to_owned(),
        // Items of earlier releases have their markers.
        ItemKind::Decision | ItemKind::OpenTask => normalize_text(strip_markers(text)),
        _ => normalize_text(text),
    }
}

/// Returns whether two texts are equal except for case, white space and final punctuation.
pub(super) fn is_same_text(one: &str, other: &str) -> bool {
    normalize_text(one) == normalize_text(other)
}

/// Normalises case, white space and final punctuation.
pub(super) fn normalize_text(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ").trim_end_matches(['.', '!', ':', ';', ',']).to_owned()
}

/// Derives the id of an item from its text and message, so that it is always the same for both.
fn item_id(kind: ItemKind, message: &str, text: &str) -> String {
    let hash = Sha256::digest([message.as_bytes(), b"\n", text.as_bytes()].concat());
    hash[..6].iter().fold(format!("{}-", kind.id_prefix()), |id, byte| format!("{id}{byte:02x}"))
}
