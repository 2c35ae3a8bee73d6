//! One chain becomes one session.

use std::collections::HashMap;
use std::io::{self, BufRead, Seek};

use chorus_proto::{Message, Role};
use jiff::Timestamp;

use super::super::sink::About;
use super::super::writer::Writer;
use super::chains::Chain;
use super::draft::{Draft, result, role};
use super::index::{Index, SIDE};
use super::line::{self, Kind, Speaker, Talk};
use super::links::find;
use super::path::Path;
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
        let Kind::Talk(talk) = kind else {
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
        about.id = None;
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
        if talk.speaker == Speaker::Assistant {
            if self.reply.as_ref().is_none_or(|reply| reply.unit != unit) {
                self.flush()?;
                self.reply = Some(Reply { unit, id, timestamp, draft: Draft::default() });
            }
            if let Some(reply) = &mut self.reply {
                reply.draft.add(talk);
            }
            return Ok(());
        }
        self.flush()?;
        let speaker = talk.speaker;
        let mut words = Draft::default();
        let mut number = 0;
        let mut next_id = || {
            number += 1;
            if number == 1 { id.clone() } else { format!("{id}-{number}") }
        };
        for output in words.add(talk) {
            let message = result(output, &mut self.names, next_id(), timestamp);
            self.writer.message(&message)?;
        }
        if words.is_empty() {
            return Ok(());
        }
        let message = words.finish(role(speaker), next_id(), timestamp);
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
        let message = reply.draft.finish(Role::Assistant, reply.id, reply.timestamp);
        self.writer.message(&message)
    }
}
