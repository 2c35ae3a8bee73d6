//! Writes one chain as one session.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Seek};

use chorus_proto::{Message, Role};
use jiff::Timestamp;

use super::super::anthropic_blocks::message_builder::{MessageBuilder, tool_result_message};
use super::super::imported_call::ImportedCall;
use super::super::json_values::{import_source, program_source};
use super::super::line_seeker::LineSeeker;
use super::super::sink::ImportedMetadata;
use super::super::writer::SessionWriter;
use super::index::{FLAG_DUPLICATE, FLAG_SIDE, TranscriptIndex};
use super::line::{self, LineKind, Program, Speaker, TranscriptMessage};
use super::main_branch::BranchPath;
use super::message_builder::{add_line, speaker_role};
use super::parents::find_node;
use super::queue_operation::QueueOperation;
use super::sidechains::Chain;
use super::titles::LeafOwner;
use crate::file::derived_id;

/// A side chain without a title gets its first words as description, up to this many characters.
const MAX_TITLE_CHARS: usize = 80;

/// Reads the lines of a path again and writes them as messages. `named_agents` are the subagents whose chains were
/// written before.
pub(super) fn write_chain<S: BufRead + Seek>(
    reader: &mut LineSeeker<'_, S>,
    index: &TranscriptIndex,
    chain: &Chain,
    path: BranchPath,
    named_agents: &mut HashSet<String>,
    writer: &mut SessionWriter<'_>,
) -> io::Result<()> {
    let mut session = ChainWriter {
        writer,
        about: ImportedMetadata::default(),
        reply: None,
        call_names: HashMap::new(),
        first_words: None,
    };
    let (mut first_uuid, mut agent) = (None, None);
    for &(node, unit) in &path.order {
        session.writer.sink.report_progress(reader.progress());
        let node = &index.nodes[node as usize];
        let (place, kind) = line::parse(reader.read_line_at(node.offset)?);
        let (LineKind::Message(talk)
        | LineKind::QueuedMessage(talk)
        | LineKind::QueueOperation(QueueOperation::Enqueue(Some(talk)))) = kind
        else {
            session.writer.skip(u64::from(node.line), "the line changed while being read");
            continue;
        };
        let (uuid, of) = place.map_or((None, None), |place| (place.uuid.map(String::from), place.agent));
        agent = agent.or(of.map(String::from));
        first_uuid = first_uuid.or_else(|| uuid.clone());
        session.add_line(*talk, uuid, unit)?;
    }
    session.flush_reply()?;
    drop(path);
    let ChainWriter { mut about, first_words, .. } = session;
    about.description = index.titles.description(!chain.side, |leaf| summary_owner(index, chain, leaf));
    if chain.side {
        about.side_chain = true;
        about.tags = vec!["side-chain".into()];
        // A subagent that is called again has another chain.
        let name = agent.filter(|agent| named_agents.insert(agent.clone())).or_else(|| first_uuid.clone());
        about.conversation = about.conversation.zip(name).map(|(parent, name)| format!("{parent}/{name}"));
        about.parent_id = about.id.take();
        // Always the same, so that another import of the file recognises it.
        about.id = about.parent_id.zip(first_uuid).map(|(parent, first)| derived_id(&format!("{parent}/{first}")));
        about.description = about.description.or(first_words);
    }
    writer.report_each(calls_of(index, chain));
    writer.end_session(about)
}

/// Returns the model calls of a chain, also those on abandoned branches.
fn calls_of(index: &TranscriptIndex, chain: &Chain) -> impl Iterator<Item = ImportedCall> {
    let of_chain = chain.members.iter().filter_map(|node| index.usage.get(*node));
    // Lines that are repeated are in no chain.
    let is_repeated = |node: u32| !chain.side && index.nodes[node as usize].has_flag(FLAG_DUPLICATE);
    let repeated = index.usage.iter().filter_map(move |(node, call)| is_repeated(node).then_some(call));
    of_chain.chain(repeated)
}

fn summary_owner(index: &TranscriptIndex, chain: &Chain, leaf: u64) -> LeafOwner {
    match find_node(index, leaf) {
        None => LeafOwner::Missing,
        Some(node) if index.nodes[node as usize].has_flag(FLAG_SIDE) != chain.side => LeafOwner::Another,
        Some(node) if chain.side && chain.members.binary_search(&node).is_err() => LeafOwner::Another,
        Some(_) => LeafOwner::This,
    }
}

/// A reply to which more lines may be added.
struct PendingReply {
    unit: u32,
    id: String,
    timestamp: Timestamp,
    program: Program,
    draft: MessageBuilder,
}

struct ChainWriter<'w, 'a> {
    writer: &'w mut SessionWriter<'a>,
    about: ImportedMetadata,
    reply: Option<PendingReply>,
    /// Ids and names of tool calls that have no result yet.
    call_names: HashMap<String, String>,
    first_words: Option<String>,
}

impl ChainWriter<'_, '_> {
    fn add_line(&mut self, mut talk: TranscriptMessage<'_>, uuid: Option<String>, unit: u32) -> io::Result<()> {
        self.update_metadata(&mut talk);
        let timestamp = talk.timestamp.or(self.about.saved_at).unwrap_or(self.writer.now);
        let id = uuid.unwrap_or_else(|| (self.writer.new_id)());
        let program = talk.program;
        if talk.speaker == Speaker::Assistant {
            if self.reply.as_ref().is_none_or(|reply| reply.unit != unit) {
                self.flush_reply()?;
                let draft = MessageBuilder::new(program.api());
                self.reply = Some(PendingReply { unit, id, timestamp, program, draft });
            }
            if let Some(reply) = &mut self.reply {
                add_line(&mut reply.draft, talk);
            }
            return Ok(());
        }
        self.flush_reply()?;
        let speaker = talk.speaker;
        let from = if speaker == Speaker::User && !talk.by_person {
            program_source(program.format())
        } else {
            import_source(program.format())
        };
        let mut words = MessageBuilder::new(program.api());
        let mut number = 0;
        let mut next_id = || {
            number += 1;
            if number == 1 { id.clone() } else { format!("{id}-{number}") }
        };
        for output in add_line(&mut words, talk) {
            let name = self.call_names.remove(output.call.as_ref());
            let message = tool_result_message(output, name, next_id(), timestamp, import_source(program.format()));
            self.writer.write_message(&message)?;
        }
        if words.is_empty() {
            return Ok(());
        }
        let message = words.finish(speaker_role(speaker), next_id(), timestamp, from);
        self.record_first_words(&message);
        self.writer.write_message(&message)
    }

    /// Updates the session's metadata from a line.
    fn update_metadata(&mut self, talk: &mut TranscriptMessage<'_>) {
        if let Some(timestamp) = talk.timestamp {
            self.about.started_at.get_or_insert(timestamp);
            self.about.saved_at = Some(timestamp);
        }
        if let Some(model) = talk.model.take() {
            self.about.model = Some(model.into());
        }
        self.about.program.get_or_insert_with(|| talk.program.format().to_owned());
        if let Some(directory) = talk.directory.take() {
            self.about.project.get_or_insert_with(|| directory.into());
        }
        if let Some(branch) = talk.branch.take() {
            self.about.branch = Some(branch.into());
        }
        if let Some(id) = talk.session_id.take() {
            self.about.conversation = Some(id.to_string()).filter(|id| !id.is_empty());
            let derived = || derived_id(&format!("claude-code/{id}"));
            self.about.id = (!id.is_empty()).then(|| id.parse().unwrap_or_else(|_| derived()));
        }
    }

    fn record_first_words(&mut self, message: &Message) {
        if self.first_words.is_none() && message.role == Role::User {
            let line = message.content.split_whitespace().collect::<Vec<_>>().join(" ");
            let end = line.char_indices().nth(MAX_TITLE_CHARS).map_or(line.len(), |(at, _)| at);
            self.first_words = Some(line[..end].trim_end().to_owned()).filter(|words| !words.is_empty());
        }
    }

    /// Writes the reply that is being assembled, if there is one.
    fn flush_reply(&mut self) -> io::Result<()> {
        let Some(reply) = self.reply.take() else { return Ok(()) };
        self.call_names.extend(reply.draft.calls().iter().map(|call| (call.id.clone(), call.name.clone())));
        let message =
            reply.draft.finish(Role::Assistant, reply.id, reply.timestamp, import_source(reply.program.format()));
        self.writer.write_message(&message)
    }
}
