//! Items of a working set on their way into it: none twice, none too long, each with the message that it came from.

use std::collections::HashSet;

use chorus_proto::{Item, ItemSource};
use sha2::{Digest as _, Sha256};

use super::text_limit::truncate_chars;

/// The longest item, in characters.
const MAX_ITEM_CHARS: usize = 240;

/// What an item is.
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
    /// An empty one, which takes nothing that is `known`, and no more than `most`.
    pub fn new(kind: ItemKind, source: ItemSource, known: &[Item], most: usize) -> Self {
        let known = known.iter().map(|item| dedup_key(kind, &item.text)).collect();
        Self { kind, source, known, items: Vec::new(), most }
    }

    pub fn is_full(&self) -> bool {
        self.items.len() >= self.most
    }

    /// Adds what `message` says, unless it is there.
    pub fn add(&mut self, text: &str, message: &str) {
        let text = truncate_chars(text.trim(), MAX_ITEM_CHARS);
        if self.is_full() || text.is_empty() || !self.known.insert(dedup_key(self.kind, &text)) {
            return;
        }
        let id = item_id(self.kind, message, &text);
        self.items.push(Item { id, text, source: self.source, message_id: Some(message.to_owned()) });
    }
}

/// What makes two items of a kind the same. `Makefile` and `makefile` are two files.
fn dedup_key(kind: ItemKind, text: &str) -> String {
    if kind == ItemKind::File { text.trim().to_owned() } else { normalize_text(text) }
}

/// Whether two texts are the same but for case, white space and the end of the sentence.
pub(super) fn is_same_text(one: &str, other: &str) -> bool {
    normalize_text(one) == normalize_text(other)
}

/// What makes two texts the same: their words, whatever stands around them.
fn normalize_text(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ").trim_end_matches(['.', '!', ':', ';', ',']).to_owned()
}

/// Always the same for the same words of the same message.
fn item_id(kind: ItemKind, message: &str, text: &str) -> String {
    let hash = Sha256::digest([message.as_bytes(), b"\n", text.as_bytes()].concat());
    hash[..6].iter().fold(format!("{}-", kind.id_prefix()), |id, byte| format!("{id}{byte:02x}"))
}
