//! Items of a working set on their way into it: none twice, none too long, each with the message that it came from.

use std::collections::HashSet;

use chorus_proto::{Item, ItemSource};
use sha2::{Digest as _, Sha256};

use super::fit::cut;

/// The longest item, in characters.
const ITEM: usize = 240;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Topic,
    Fact,
    Decision,
    OpenTask,
    File,
    Conflict,
}

impl Kind {
    fn letter(self) -> char {
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
pub(super) struct List {
    kind: Kind,
    source: ItemSource,
    known: HashSet<String>,
    pub items: Vec<Item>,
    most: usize,
}

impl List {
    /// An empty one, which takes nothing that is `known`, and no more than `most`.
    pub fn new(kind: Kind, source: ItemSource, known: &[Item], most: usize) -> Self {
        let known = known.iter().map(|item| key(kind, &item.text)).collect();
        Self { kind, source, known, items: Vec::new(), most }
    }

    pub fn full(&self) -> bool {
        self.items.len() >= self.most
    }

    /// Adds what `message` says, unless it is there.
    pub fn add(&mut self, text: &str, message: &str) {
        let text = cut(text.trim(), ITEM);
        if self.full() || text.is_empty() || !self.known.insert(key(self.kind, &text)) {
            return;
        }
        let id = id(self.kind, message, &text);
        self.items.push(Item { id, text, source: self.source, message_id: Some(message.to_owned()) });
    }
}

/// What makes two items of a kind the same. `Makefile` and `makefile` are two files.
fn key(kind: Kind, text: &str) -> String {
    if kind == Kind::File { text.trim().to_owned() } else { plain(text) }
}

/// Whether two texts are the same but for case, white space and the end of the sentence.
pub(super) fn same(one: &str, other: &str) -> bool {
    plain(one) == plain(other)
}

/// What makes two texts the same: their words, whatever stands around them.
fn plain(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ").trim_end_matches(['.', '!', ':', ';', ',']).to_owned()
}

/// Always the same for the same words of the same message.
fn id(kind: Kind, message: &str, text: &str) -> String {
    let hash = Sha256::digest([message.as_bytes(), b"\n", text.as_bytes()].concat());
    hash[..6].iter().fold(format!("{}-", kind.letter()), |id, byte| format!("{id}{byte:02x}"))
}
