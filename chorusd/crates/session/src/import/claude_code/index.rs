//! The first pass: indexes every line in a few dozen bytes.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, Seek};

use super::super::anthropic_blocks::content::Content;
use super::super::line_reader::{LINE_TOO_LONG, LineReader};
use super::super::writer::SessionWriter;
use super::call_index::CallIndex;
use super::line::{self, LineKind, Speaker, TranscriptMessage, TreePosition};
use super::queued_messages::{LinePosition, QueuedMessages};
use super::titles::Titles;
use super::unknown_types::UnknownTypes;

/// Marks a missing node.
pub(super) const NO_NODE: u32 = u32::MAX;

/// The line has a message.
pub(super) const FLAG_MESSAGE: u8 = 1;
/// The line belongs to a side chain.
pub(super) const FLAG_SIDE: u8 = 2;
/// The line is part of a model's reply.
pub(super) const FLAG_ASSISTANT: u8 = 4;
/// The line is a system line.
pub(super) const FLAG_SYSTEM: u8 = 8;
/// The line contains tool results.
pub(super) const FLAG_RESULT: u8 = 16;
/// The line repeats the uuid of another line, which counts instead.
pub(super) const FLAG_DUPLICATE: u8 = 32;
/// The line carries a message that was typed while the program worked and that no other line carries.
pub(super) const FLAG_QUEUED: u8 = 64;

/// A line that has a position in the tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineNode {
    pub offset: u64,
    pub line: u32,
    /// Hash of the id of the reply that the line is part of, or 0.
    pub reply: u32,
    /// The parent node, once the parents are resolved.
    pub parent: u32,
    /// Number of the subagent, counted from 1, or 0 if the line does not name one.
    pub agent: u16,
    pub flags: u8,
}

impl LineNode {
    pub(super) fn has_flag(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The result of the first pass. Ids are stored as hashes with random keys, so that no file can be crafted to cause
/// collisions.
#[derive(Debug, Default)]
pub(super) struct TranscriptIndex {
    /// In the order of the file.
    pub nodes: Vec<LineNode>,
    /// uuid and node. Once the parents are resolved, sorted, and only those that summaries refer to.
    pub uuids: Vec<(u64, u32)>,
    /// The uuid of each node's parent, or 0 if it names none. Emptied when the parents are resolved.
    pub parents: Vec<u64>,
    /// Id of each tool call and the node that makes it, in the order of the nodes.
    pub calls: Vec<(u64, u32)>,
    /// Id of each answered tool call and the node with its result, in the order of the nodes.
    pub answers: Vec<(u64, u32)>,
    pub titles: Titles,
    pub usage: CallIndex,
    hasher: RandomState,
    agents: HashMap<u64, u16>,
}

impl TranscriptIndex {
    /// Reads all lines. Lines that cannot be parsed are skipped and reported with the reason.
    pub(super) fn build(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> io::Result<Self> {
        let mut index = Self::default();
        let mut typed = QueuedMessages::default();
        let (mut unknown, mut count) = (UnknownTypes::default(), 0);
        let mut lines = LineReader::new(source);
        while let Some(line) = lines.next()? {
            count += 1;
            writer.sink.report_progress(line.offset / 2);
            let Some(bytes) = line.bytes else {
                writer.skip(line.number, LINE_TOO_LONG);
                continue;
            };
            let (place, kind) = line::parse(bytes);
            if let Some(place) = place {
                let talk = if let LineKind::Message(talk) = &kind { Some(&**talk) } else { None };
                let node = index.add_node(line.number, line.offset, &place, talk);
                if let Some(talk) = talk {
                    index.usage.add_line(node, place.uuid.as_deref(), talk, writer.now);
                }
                match &kind {
                    LineKind::QueuedMessage(talk) => {
                        index.nodes[node as usize].flags |= FLAG_QUEUED;
                        let replaced = if place.side { None } else { typed.add_attachment(talk, node) };
                        index.clear_queued_flags(replaced);
                    }
                    LineKind::Message(talk) if talk.speaker == Speaker::User && !place.side => {
                        let sent = typed.match_user_line(talk);
                        index.clear_queued_flags(sent);
                    }
                    _ => {}
                }
            }
            match kind {
                LineKind::Unknown(reason) => writer.skip(line.number, reason),
                LineKind::UnknownType(reason) => unknown.add(line.number, reason),
                LineKind::Title(title) => {
                    let hasher = &index.hasher;
                    index.titles.add(title, |uuid| hasher.hash_one(uuid) | 1);
                }
                LineKind::QueueOperation(operation) => {
                    let at = LinePosition { line: line.number, offset: line.offset, next: index.nodes.len() as u32 };
                    let change = typed.apply_operation(operation, at);
                    index.clear_queued_flags(change.released_nodes);
                    if let Some(LinePosition { line, offset, .. }) = change.new_carrier {
                        let node = index.add_node(line, offset, &TreePosition::default(), None);
                        index.nodes[node as usize].flags |= FLAG_QUEUED;
                    }
                }
                LineKind::Message(_) | LineKind::QueuedMessage(_) | LineKind::Bookkeeping => {}
            }
        }
        unknown.report(count, writer);
        for line in typed.taken_back() {
            writer.leave_out(line, "removed before it was sent");
        }
        for (line, node) in typed.take_unsent(writer.now) {
            writer.leave_out(line, "still waiting to be sent");
            index.clear_queued_flags([node]);
        }
        // [`Self::find_call`] searches by the id of the call.
        index.calls.sort_unstable();
        index.usage.finish();
        Ok(index)
    }

    /// Hashes an id. Never returns 0, which means that there is none.
    fn hash_id(&self, text: &str) -> u64 {
        self.hasher.hash_one(text) | 1
    }

    /// Clears the flag of nodes whose message another line carries. They keep their position in the tree.
    fn clear_queued_flags(&mut self, nodes: impl IntoIterator<Item = u32>) {
        nodes.into_iter().for_each(|node| self.nodes[node as usize].flags &= !FLAG_QUEUED);
    }

    fn add_node(
        &mut self,
        line: u64,
        offset: u64,
        place: &TreePosition<'_>,
        talk: Option<&TranscriptMessage<'_>>,
    ) -> u32 {
        let number = self.nodes.len() as u32;
        let mut node = LineNode {
            offset,
            line: u32::try_from(line).unwrap_or(u32::MAX),
            reply: 0,
            parent: NO_NODE,
            agent: place.agent.as_deref().map_or(0, |agent| self.agent_number(agent)),
            flags: if place.side { FLAG_SIDE } else { 0 },
        };
        if let Some(talk) = talk {
            node.reply = talk.reply.as_deref().map_or(0, |reply| self.hash_id(reply) as u32 | 1);
            node.flags |= FLAG_MESSAGE | self.speaker_flags(number, talk.speaker, &talk.content);
        }
        self.nodes.push(node);
        self.parents.push(place.parent.as_deref().map_or(0, |parent| self.hash_id(parent)));
        if let Some(uuid) = place.uuid.as_deref() {
            self.uuids.push((self.hash_id(uuid), number));
        }
        number
    }

    fn speaker_flags(&mut self, number: u32, speaker: Speaker, content: &Content<'_>) -> u8 {
        match speaker {
            Speaker::System => FLAG_SYSTEM,
            Speaker::Assistant => {
                self.calls.extend(content.call_ids().map(|id| (self.hasher.hash_one(id), number)));
                FLAG_ASSISTANT
            }
            Speaker::User => {
                let before = self.answers.len();
                self.answers.extend(content.result_ids().map(|id| (self.hasher.hash_one(id), number)));
                if self.answers.len() > before { FLAG_RESULT } else { 0 }
            }
        }
    }

    fn agent_number(&mut self, name: &str) -> u16 {
        let next = u16::try_from(self.agents.len() + 1).unwrap_or(0);
        *self.agents.entry(self.hasher.hash_one(name)).or_insert(next)
    }

    /// Returns the node that made the call `id` whose result is in `node`: the nearest one before it, since ids may
    /// recur.
    pub(super) fn find_call(&self, id: u64, node: u32) -> Option<u32> {
        let after = self.calls.partition_point(|call| *call < (id, node));
        self.calls[..after].last().filter(|call| call.0 == id).map(|call| call.1)
    }

    /// Returns the ids of the calls whose results are in a node.
    pub(super) fn answered_calls(&self, node: u32) -> &[(u64, u32)] {
        let from = self.answers.partition_point(|answer| answer.1 < node);
        let rest = &self.answers[from..];
        &rest[..rest.partition_point(|answer| answer.1 == node)]
    }
}
