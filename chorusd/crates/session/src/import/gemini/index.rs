//! Follows the changes that the lines of a chat make to earlier ones.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::ChatMetadata;
use super::entry::{self, SUMMARY_ANSWER};
use crate::import::raw_object::{RawObject, list_entries};

/// The place of a message that belongs to the conversation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub line: u64,
    pub offset: u64,
    /// Number of the message in the list of a `$set`, starting at 1; 0 if the line is the message.
    pub list_entry: u32,
    content_hash: u64,
}

/// The messages of a conversation in order, by the lines that hold their last form.
#[derive(Debug, Default)]
pub(super) struct TranscriptIndex {
    pub nodes: Vec<Node>,
    /// The lines of messages that were taken back.
    pub rewound: Vec<u64>,
    /// Positions in `nodes` by the hash of the id. A message that a compaction repeats has several ids.
    positions: HashMap<u64, usize>,
}

impl TranscriptIndex {
    /// Adds the effect of a line at this number and offset. Returns the reason if it is unknown.
    pub(super) fn add_line(
        &mut self,
        fields: &RawObject<'_>,
        (line, offset): (u64, u64),
        about: &mut ChatMetadata,
    ) -> Result<(), String> {
        if let Some(set) = fields.get("$set") {
            let set = RawObject::from_value(set).ok_or("$set is not an object")?;
            if let Some(messages) = set.get("messages") {
                let list = list_entries(messages).ok_or("messages is not a list")?;
                let list: Vec<_> = list.into_iter().map(RawObject::from_value).collect();
                self.add_list(&list, (line, offset), about);
            }
            return Ok(());
        }
        if let Some(id) = fields.get_text("$rewindTo") {
            if let Some(&position) = self.positions.get(&hash_of(&id)) {
                self.rewound.extend(self.nodes.drain(position.min(self.nodes.len())..).map(|node| node.line));
                self.positions.retain(|_, at| *at < position);
            }
            return Ok(());
        }
        let id = fields.get_text("id").ok_or("a line of an unknown type")?;
        let node = Node { line, offset, list_entry: 0, content_hash: content_hash(fields) };
        if !skip_context(fields, about) {
            self.put(&id, node);
        }
        Ok(())
    }

    /// Adds the messages of a list that takes the place of all before it: after a compaction they are a summary and the
    /// last messages with new ids. What the list leaves out stays.
    fn add_list(&mut self, list: &[Option<RawObject<'_>>], (line, offset): (u64, u64), about: &mut ChatMetadata) {
        let is_new =
            |fields: &RawObject<'_>| fields.get_text("id").is_none_or(|id| !self.positions.contains_key(&hash_of(&id)));
        let is_compaction =
            list.iter().flatten().any(|fields| entry::is_summary(fields) && is_new(fields)) && !self.nodes.is_empty();
        let before = self.nodes.len();
        // Repeated messages are searched for from the end, each behind the one before.
        let mut repeats: Option<HashMap<u64, Vec<usize>>> = is_compaction.then(HashMap::new);
        if let Some(repeats) = &mut repeats {
            for (at, node) in self.nodes.iter().enumerate() {
                repeats.entry(node.content_hash).or_default().push(at);
            }
        }
        for (number, fields) in (1..).zip(list) {
            let Some(fields) = fields else { continue };
            let Some(id) = fields.get_text("id") else { continue };
            if self.positions.contains_key(&hash_of(&id)) || skip_context(fields, about) {
                continue;
            }
            let content_hash = content_hash(fields);
            if let Some(repeats) = &repeats {
                if let Some(at) = repeats.get(&content_hash).and_then(|all| all.last()) {
                    self.positions.insert(hash_of(&id), *at);
                    continue;
                }
                let is_answer = entry::text_of(fields).trim() == SUMMARY_ANSWER;
                if is_answer || entry::has_only_results(fields) {
                    self.positions.insert(hash_of(&id), before);
                    continue;
                }
            }
            self.put(&id, Node { line, offset, list_entry: number, content_hash });
        }
    }

    /// Adds a message, or the new form of one.
    fn put(&mut self, id: &str, node: Node) {
        match self.positions.get(&hash_of(id)) {
            Some(&position) if position < self.nodes.len() => {
                let former = &mut self.nodes[position];
                *former = Node { content_hash: former.content_hash, ..node };
            }
            _ => {
                self.positions.insert(hash_of(id), self.nodes.len());
                self.nodes.push(node);
            }
        }
    }
}

/// Returns whether a message is the context that the program puts before the conversation, after reading the directory
/// from it.
fn skip_context(fields: &RawObject<'_>, about: &mut ChatMetadata) -> bool {
    let is_context = entry::is_context(fields);
    if is_context {
        about.read_context(&entry::text_of(fields));
    }
    is_context
}

/// Returns a hash of the text and the calls of a message, which a compaction keeps.
fn content_hash(fields: &RawObject<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    fields.get_text("type").hash(&mut hasher);
    entry::text_of(fields).trim().hash(&mut hasher);
    for (name, args) in entry::calls_of(fields) {
        name.hash(&mut hasher);
        args.hash(&mut hasher);
    }
    hasher.finish()
}

fn hash_of(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
