//! What older messages leave behind when no model is asked: the files, decisions and to-dos that they name, found by rules. The same
//! messages leave the same behind, whoever asks and whenever.

mod cues;
mod paths;

use std::collections::HashSet;

use chorus_proto::{Item, ItemSource, Message, Role, WorkingSet};
use sha2::{Digest as _, Sha256};

use super::digest::ends;
use super::fit::cut;
use super::sentence::sentences;

/// Items of each kind that one compaction finds.
pub const MOST: usize = 10;

/// Bytes at both ends of a text that are looked at.
const EDGE: usize = 4096;

/// The longest item, in characters.
const ITEM: usize = 240;

/// What was found, in order of appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    pub decisions: Vec<Item>,
    pub open_tasks: Vec<Item>,
    pub files_touched: Vec<Item>,
}

/// What `messages` name, at most `most` of each kind, and nothing that `known` has. Files are taken from calls of tools and from
/// what people and models say; decisions and to-dos from what they say. What tools answer, and what Chorus wrote itself, is left out.
#[must_use]
pub fn findings(messages: impl IntoIterator<Item = Message>, known: &WorkingSet, most: usize) -> Findings {
    let mut decisions = List::new('d', &known.decisions, most);
    let mut tasks = List::new('o', &known.open_tasks, most);
    let mut files = List::new('f', &known.files_touched, most);
    for message in messages {
        if message.generated || !matches!(message.role, Role::User | Role::Assistant) {
            continue;
        }
        let text = ends(&message.content, EDGE, EDGE);
        if !files.full() {
            paths::in_text(&text, |path| files.add(path, &message.id));
            for call in &message.tool_calls {
                paths::in_params(call.params.get(), |path| files.add(path, &message.id));
            }
        }
        if decisions.full() && tasks.full() {
            continue;
        }
        // Most texts decide nothing and leave nothing to do, and need not be taken apart.
        let lower = text.to_lowercase();
        if !cues::may_tell(&lower) {
            continue;
        }
        for line in text.lines() {
            if let Some(task) = cues::open_box(line) {
                tasks.add(task, &message.id);
            }
        }
        for sentence in sentences(&text) {
            // A question decides nothing, and leaves nothing to do.
            if sentence.text.ends_with(['?', '？']) {
                continue;
            }
            if cues::is_task(&sentence.words) && !cues::is_box(&sentence.text) {
                tasks.add(&sentence.text, &message.id);
            } else if cues::is_decision(&sentence.words) {
                decisions.add(&sentence.text, &message.id);
            }
        }
    }
    Findings { decisions: decisions.items, open_tasks: tasks.items, files_touched: files.items }
}

/// One kind of item.
struct List {
    kind: char,
    known: HashSet<String>,
    items: Vec<Item>,
    most: usize,
}

impl List {
    fn new(kind: char, known: &[Item], most: usize) -> Self {
        Self { kind, known: known.iter().map(|item| key(kind, &item.text)).collect(), items: Vec::new(), most }
    }

    fn full(&self) -> bool {
        self.items.len() >= self.most
    }

    fn add(&mut self, text: &str, message: &str) {
        let text = cut(text.trim(), ITEM);
        if self.full() || text.is_empty() || !self.known.insert(key(self.kind, &text)) {
            return;
        }
        let id = id(self.kind, message, &text);
        self.items.push(Item { id, text, source: ItemSource::Rule, message_id: Some(message.to_owned()) });
    }
}

/// What makes two items of a kind the same. `Makefile` and `makefile` are two files.
fn key(kind: char, text: &str) -> String {
    if kind == 'f' { text.trim().to_owned() } else { plain(text) }
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
fn id(kind: char, message: &str, text: &str) -> String {
    let hash = Sha256::digest([message.as_bytes(), b"\n", text.as_bytes()].concat());
    hash[..6].iter().fold(format!("{kind}-"), |id, byte| format!("{id}{byte:02x}"))
}

#[cfg(test)]
mod tests;
