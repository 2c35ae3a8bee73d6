//! The first reading: what has to be known of every line, in a few dozen bytes.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, Seek};

use super::super::anthropic::content::Content;
use super::super::lines::{Lines, TOO_LONG};
use super::super::writer::Writer;
use super::line::{self, Kind, Place, Speaker, Talk};
use super::titles::Titles;
use super::typed::{At, Typed};

/// Stands for no node.
pub(super) const NONE: u32 = u32::MAX;

/// The line says something.
pub(super) const TALK: u8 = 1;
/// It belongs to a side chain.
pub(super) const SIDE: u8 = 2;
/// It is part of a model's reply.
pub(super) const ASSISTANT: u8 = 4;
/// It is a system line.
pub(super) const SYSTEM: u8 = 8;
/// It answers calls.
pub(super) const RESULT: u8 = 16;
/// Another line with its uuid stands for it.
pub(super) const COPY: u8 = 32;
/// It carries a message that was typed while the program worked, and no other line does.
pub(super) const QUEUED: u8 = 64;

/// One line that has a place in the tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub offset: u64,
    pub line: u32,
    /// Which reply of the model this is a part of, as a hash; 0: none.
    pub reply: u32,
    /// The node before it, once the links are resolved.
    pub parent: u32,
    /// The helper, counted from 1; 0: not said.
    pub agent: u16,
    pub flags: u8,
}

impl Node {
    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// What the first reading found. Ids are kept as hashes; the keys of the hash are random, so that no file can be
/// made to collide.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// In the order of the file.
    pub nodes: Vec<Node>,
    /// uuid and node, sorted once resolved.
    pub uuids: Vec<(u64, u32)>,
    /// For each node the uuid of its parent, 0 where it names none; emptied when resolved.
    pub parents: Vec<u64>,
    /// Id of a call and the node that makes it, in order of the node.
    pub calls: Vec<(u64, u32)>,
    /// Id of a call and the node that answers it, in order of the node.
    pub answers: Vec<(u64, u32)>,
    pub titles: Titles,
    hasher: RandomState,
    agents: HashMap<u64, u16>,
}

impl Index {
    /// Reads every line; what is not understood is skipped with its reason.
    pub fn read(source: &mut (impl BufRead + Seek), writer: &mut Writer<'_>) -> io::Result<Self> {
        let mut index = Self::default();
        let mut typed = Typed::default();
        let mut lines = Lines::new(source);
        while let Some(line) = lines.next()? {
            writer.sink.progress(line.offset / 2);
            let Some(bytes) = line.bytes else {
                writer.skip(line.number, TOO_LONG);
                continue;
            };
            let (place, kind) = line::read(bytes);
            if let Some(place) = place {
                let talk = if let Kind::Talk(talk) = &kind { Some(&**talk) } else { None };
                let node = index.add(line.number, line.offset, &place, talk);
                match &kind {
                    Kind::Queued(talk) => {
                        index.nodes[node as usize].flags |= QUEUED;
                        let replaced = if place.side { None } else { typed.attach(talk, node) };
                        index.carried_elsewhere(replaced);
                    }
                    Kind::Talk(talk) if talk.speaker == Speaker::User && !place.side => {
                        let sent = typed.send(talk);
                        index.carried_elsewhere(sent);
                    }
                    _ => {}
                }
            }
            match kind {
                Kind::Unknown(reason) => writer.skip(line.number, reason),
                Kind::Title(title) => {
                    let hasher = &index.hasher;
                    index.titles.add(title, |uuid| hasher.hash_one(uuid) | 1);
                }
                Kind::Queue(operation) => {
                    let at = At { line: line.number, offset: line.offset, next: index.nodes.len() as u32 };
                    let change = typed.take(operation, at);
                    index.carried_elsewhere(change.carried_elsewhere);
                    if let Some(At { line, offset, .. }) = change.new {
                        let node = index.add(line, offset, &Place::default(), None);
                        index.nodes[node as usize].flags |= QUEUED;
                    }
                }
                Kind::Talk(_) | Kind::Queued(_) | Kind::Note => {}
            }
        }
        for line in typed.taken_back() {
            writer.skip(line, "taken back before it was sent");
        }
        // Answers are asked for by their call.
        index.calls.sort_unstable();
        Ok(index)
    }

    /// Never 0, which stands for none.
    fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text) | 1
    }

    /// Nodes whose message another line carries: they say nothing any more, and keep their place in the tree.
    fn carried_elsewhere(&mut self, nodes: impl IntoIterator<Item = u32>) {
        nodes.into_iter().for_each(|node| self.nodes[node as usize].flags &= !QUEUED);
    }

    fn add(&mut self, line: u64, offset: u64, place: &Place<'_>, talk: Option<&Talk<'_>>) -> u32 {
        let number = self.nodes.len() as u32;
        let mut node = Node {
            offset,
            line: u32::try_from(line).unwrap_or(u32::MAX),
            reply: 0,
            parent: NONE,
            agent: place.agent.as_deref().map_or(0, |agent| self.agent(agent)),
            flags: if place.side { SIDE } else { 0 },
        };
        if let Some(talk) = talk {
            node.reply = talk.reply.as_deref().map_or(0, |reply| self.hash(reply) as u32 | 1);
            node.flags |= TALK | self.kind(number, talk.speaker, &talk.content);
        }
        self.nodes.push(node);
        self.parents.push(place.parent.as_deref().map_or(0, |parent| self.hash(parent)));
        if let Some(uuid) = place.uuid.as_deref() {
            self.uuids.push((self.hash(uuid), number));
        }
        number
    }

    fn kind(&mut self, number: u32, speaker: Speaker, content: &Content<'_>) -> u8 {
        match speaker {
            Speaker::System => SYSTEM,
            Speaker::Assistant => {
                self.calls.extend(content.calls().map(|id| (self.hasher.hash_one(id), number)));
                ASSISTANT
            }
            Speaker::User => {
                let before = self.answers.len();
                self.answers.extend(content.answers().map(|id| (self.hasher.hash_one(id), number)));
                if self.answers.len() > before { RESULT } else { 0 }
            }
        }
    }

    fn agent(&mut self, name: &str) -> u16 {
        let next = u16::try_from(self.agents.len() + 1).unwrap_or(0);
        *self.agents.entry(self.hasher.hash_one(name)).or_insert(next)
    }

    /// The node that made a call which `node` answers: the nearest before it, for an id may come again.
    pub fn caller(&self, id: u64, node: u32) -> Option<u32> {
        let after = self.calls.partition_point(|call| *call < (id, node));
        self.calls[..after].last().filter(|call| call.0 == id).map(|call| call.1)
    }

    /// The ids of the calls that a node answers.
    pub fn answered(&self, node: u32) -> &[(u64, u32)] {
        let from = self.answers.partition_point(|answer| answer.1 < node);
        let rest = &self.answers[from..];
        &rest[..rest.partition_point(|answer| answer.1 == node)]
    }
}
