//! One chain becomes one session.

use std::collections::HashMap;
use std::io::{self, BufRead, Seek};

use chorus_proto::{Message, Role};
use jiff::Timestamp;

use super::super::anthropic::draft::{Draft, result};
use super::super::sink::About;
use super::super::values::{by_program, source};
use super::super::writer::Writer;
use super::chains::Chain;
use super::draft::{add, role};
use super::index::{Index, SIDE};
use super::line::{self, Kind, Program, Speaker, Talk};
use super::links::find;
use super::path::Path;
use super::queue::Operation;
use super::seek::Reader;
use super::titles::Owner;

/// A side chain without a name is called by its first words, up to this many characters.
const NAME: usize = 80;

/// Reads the lines of a path again and writes them as messages.
pub(super) fn write<S: BufRead + Seek>(
    reader: &mut Reader<'_, S>,
    index: &Index,
    chain: &Chain,
    path: &Path,
    writer: &mut Writer<'_>,
) -> io::Result<()> {
    let mut session =
        Session { writer, about: About::default(), reply: None, names: HashMap::new(), first_words: None };
    for &(node, unit) in &path.order {
        session.writer.sink.progress(reader.progress());
        let node = &index.nodes[node as usize];
        let (place, kind) = line::read(reader.line(node.offset)?);
        let (Kind::Talk(talk) | Kind::Queued(talk) | Kind::Queue(Operation::Enqueue(Some(talk)))) = kind else {
            session.writer.skip(u64::from(node.line), "the line changed while it was read");
            continue;
        };
        let uuid = place.and_then(|place| place.uuid).map(String::from);
        session.take(*talk, uuid, unit)?;
    }
    session.flush()?;
    let Session { mut about, first_words, .. } = session;
    about.description = index.titles.describe(!chain.side, |leaf| owner(index, chain, leaf));
    if chain.side {
        about.side_chain = true;
        about.tags = vec!["side-chain".into()];
        about.parent_id = about.id.take();
        about.description = about.description.or(first_words);
    }
    writer.end(about)
}

fn owner(index: &Index, chain: &Chain, leaf: u64) -> Owner {
    match find(index, leaf) {
        None => Owner::Nobody,
        Some(node) if index.nodes[node as usize].is(SIDE) != chain.side => Owner::Another,
        Some(node) if chain.side && chain.members.binary_search(&node).is_err() => Owner::Another,
        Some(_) => Owner::This,
    }
}

/// A reply that is being gathered.
struct Reply {
    unit: u32,
    id: String,
    timestamp: Timestamp,
    program: Program,
    draft: Draft,
}

struct Session<'w, 'a> {
    writer: &'w mut Writer<'a>,
    about: About,
    reply: Option<Reply>,
    /// Ids and names of calls without a result.
    names: HashMap<String, String>,
    first_words: Option<String>,
}

impl Session<'_, '_> {
    fn take(&mut self, mut talk: Talk<'_>, uuid: Option<String>, unit: u32) -> io::Result<()> {
        self.look(&mut talk);
        let timestamp = talk.timestamp.or(self.about.saved_at).unwrap_or(self.writer.now);
        let id = uuid.unwrap_or_else(|| (self.writer.new_id)());
        let program = talk.program;
        if talk.speaker == Speaker::Assistant {
            if self.reply.as_ref().is_none_or(|reply| reply.unit != unit) {
                self.flush()?;
                let draft = Draft::of(program.api());
                self.reply = Some(Reply { unit, id, timestamp, program, draft });
            }
            if let Some(reply) = &mut self.reply {
                add(&mut reply.draft, talk);
            }
            return Ok(());
        }
        self.flush()?;
        let speaker = talk.speaker;
        let from = if speaker == Speaker::User && !talk.by_person {
            by_program(program.format())
        } else {
            source(program.format())
        };
        let mut words = Draft::of(program.api());
        let mut number = 0;
        let mut next_id = || {
            number += 1;
            if number == 1 { id.clone() } else { format!("{id}-{number}") }
        };
        for output in add(&mut words, talk) {
            let name = self.names.remove(output.call.as_ref());
            let message = result(output, name, next_id(), timestamp, source(program.format()));
            self.writer.message(&message)?;
        }
        if words.is_empty() {
            return Ok(());
        }
        let message = words.finish(role(speaker), next_id(), timestamp, from);
        self.name(&message);
        self.writer.message(&message)
    }

    /// Notes what a line says about the session.
    fn look(&mut self, talk: &mut Talk<'_>) {
        if let Some(timestamp) = talk.timestamp {
            self.about.started_at.get_or_insert(timestamp);
            self.about.saved_at = Some(timestamp);
        }
        if let Some(model) = talk.model.take() {
            self.about.model = Some(model.into());
        }
        if let Some(id) = talk.session_id.take() {
            self.about.id = id.parse().ok();
        }
    }

    fn name(&mut self, message: &Message) {
        if self.first_words.is_none() && message.role == Role::User {
            let line = message.content.split_whitespace().collect::<Vec<_>>().join(" ");
            let end = line.char_indices().nth(NAME).map_or(line.len(), |(at, _)| at);
            self.first_words = Some(line[..end].trim_end().to_owned()).filter(|words| !words.is_empty());
        }
    }

    /// Writes the reply that was being gathered.
    fn flush(&mut self) -> io::Result<()> {
        let Some(reply) = self.reply.take() else { return Ok(()) };
        self.names.extend(reply.draft.calls().iter().map(|call| (call.id.clone(), call.name.clone())));
        let message = reply.draft.finish(Role::Assistant, reply.id, reply.timestamp, source(reply.program.format()));
        self.writer.message(&message)
    }
}
