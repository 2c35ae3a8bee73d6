//! Imports sessions of GitHub Copilot CLI: JSONL of events. Those of subagents are among the others, and become sessions of
//! their own.

mod call_records;
mod event;

use std::collections::HashMap;
use std::io::{BufRead, Seek};

use uuid::Uuid;

use super::error::ImportError;
use super::json_values::parse_timestamp;
use super::line_reader::{LINE_TOO_LONG, LineReader};
use super::line_seeker::LineSeeker;
use super::raw_object::RawObject;
use super::sink::ImportedMetadata;
use super::writer::SessionWriter;
use crate::file::derived_id;
use call_records::CallRecords;
use event::{EventReader, EventUse};

const PROGRAM: &str = "copilot";

/// The version of the events that is known.
const KNOWN_VERSION: u64 = 1;

/// A subagent gets its first words as description, up to this many characters.
const MAX_TITLE_CHARS: usize = 80;

/// Returns whether a line is an event.
pub(super) fn is_event(fields: &RawObject<'_>) -> bool {
    fields.get_text("type").is_some_and(|kind| kind.contains('.'))
        && fields.has("data")
        && fields.has("id")
        && fields.contains_key("parentId")
}

/// The events of the main conversation or of a subagent.
#[derive(Debug, Default)]
struct Conversation {
    /// `None` for the main conversation.
    agent: Option<String>,
    title: Option<String>,
    /// Lines with their offsets.
    lines: Vec<(u64, u64)>,
}

/// The events of a file by conversation.
#[derive(Debug, Default)]
struct EventIndex {
    /// The main conversation comes first.
    conversations: Vec<Conversation>,
    /// Offsets of images and files by their ids.
    assets: HashMap<String, u64>,
    calls: CallRecords,
}

impl EventIndex {
    fn of_agent(&mut self, agent: Option<&str>) -> &mut Conversation {
        let found = self.conversations.iter().position(|of| of.agent.as_deref() == agent);
        let at = found.unwrap_or_else(|| {
            self.conversations.push(Conversation { agent: agent.map(Into::into), ..Conversation::default() });
            self.conversations.len() - 1
        });
        &mut self.conversations[at]
    }
}

/// Imports the main conversation and those of its subagents.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut about = ImportedMetadata::default();
    let mut index = EventIndex { conversations: vec![Conversation::default()], ..EventIndex::default() };
    let mut entries = EventReader::default();
    let mut lines = LineReader::new(&mut *source);
    while let Some(line) = lines.next()? {
        writer.sink.report_progress(line.offset / 2);
        let (number, offset) = (line.number, line.offset);
        if line.bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)) {
            // A crash can leave these after the last line.
            continue;
        }
        let parsed = line.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned()).and_then(RawObject::from_bytes);
        let read =
            parsed.and_then(|fields| index_event(&fields, (number, offset), &mut index, &mut entries, &mut about));
        if let Err(reason) = read {
            writer.skip(number, reason);
        }
    }
    let mut reader = LineSeeker::new(source)?;
    let main = about.clone();
    let mut calls = index.calls.into_calls();
    // Without records, the replies tell how many tokens they have.
    writer.reports_calls = !calls.is_empty();
    for conversation in index.conversations {
        for (line, offset) in conversation.lines {
            writer.sink.report_progress(reader.progress());
            let bytes = reader.read_line_at(offset)?.to_vec();
            let Ok(fields) = RawObject::from_bytes(&bytes) else {
                writer.skip(line, "the line changed while being read");
                continue;
            };
            let mut read_asset = |id: &str| {
                let line = reader.read_line_at(*index.assets.get(id)?).ok()?;
                let data = RawObject::from_bytes(line).ok()?;
                Some(RawObject::from_value(data.get("data")?)?.get_text("data")?.into_owned())
            };
            match entries.parse(&fields, &mut about, &mut read_asset) {
                Ok(entry) => entry.write(writer)?,
                Err(reason) => writer.skip(line, reason),
            }
        }
        writer.report_calls(&mut calls);
        let mut ended = std::mem::replace(&mut about, main.clone());
        ended.id = ended.conversation.as_deref().map(id_of);
        if let Some(agent) = conversation.agent {
            ended.parent_id = ended.id.take();
            ended.conversation = ended.conversation.map(|parent| format!("{parent}/{agent}"));
            ended.id = ended.conversation.as_deref().map(id_of);
            ended.description = conversation.title;
            ended.side_chain = true;
            ended.tags = vec!["side-chain".into()];
        }
        writer.end_session(ended)?;
    }
    Ok(())
}

fn id_of(conversation: &str) -> Uuid {
    Uuid::parse_str(conversation).unwrap_or_else(|_| derived_id(&format!("{PROGRAM}/{conversation}")))
}

/// Adds an event to the index. Returns the reason if it is unknown.
fn index_event(
    fields: &RawObject<'_>,
    place: (u64, u64),
    index: &mut EventIndex,
    entries: &mut EventReader,
    about: &mut ImportedMetadata,
) -> Result<(), String> {
    let kind = fields.get_text("type").ok_or("no type")?;
    let data = fields.get("data").and_then(RawObject::from_value).ok_or("no data")?;
    let agent = fields.get_text("agentId");
    match EventUse::of(&kind) {
        EventUse::Message => {
            let conversation = index.of_agent(agent.as_deref());
            if kind == "user.message" && agent.is_some() && conversation.title.is_none() {
                let text = data.get_text("content").unwrap_or_default();
                let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
                conversation.title = Some(line.chars().take(MAX_TITLE_CHARS).collect());
            }
            conversation.lines.push(place);
        }
        EventUse::Start if about.conversation.is_none() => {
            about.conversation = data.get_text("sessionId").map(String::from);
            about.started_at = data.get("startTime").or_else(|| fields.get("timestamp")).and_then(parse_timestamp);
            read_context(&data, about);
            let version = data.get_u64("version").unwrap_or(KNOWN_VERSION);
            if version != KNOWN_VERSION {
                return Err(format!("the events have version {version}; version {KNOWN_VERSION} is known"));
            }
        }
        EventUse::Start => read_context(&data, about),
        EventUse::Model if agent.is_none() => about.model = data.get_text("newModel").map(String::from),
        EventUse::Info => about.parent_id = about.parent_id.or_else(|| forked_from(&data)),
        EventUse::Asset => {
            index.assets.insert(data.get_text("assetId").unwrap_or_default().into_owned(), place.1);
        }
        EventUse::Usage => {
            let usage = data.get("usage").and_then(RawObject::from_value).ok_or("no usage")?;
            let call = usage.get_text("apiCallId").unwrap_or_default().into_owned();
            entries.add_usage(call, &usage);
            index.calls.add_record(fields, &usage);
        }
        EventUse::Shutdown => index.calls.add_shutdown(fields, &data),
        EventUse::Model | EventUse::None => {}
        EventUse::Unknown => return Err(format!("unknown event {:?}", kind.chars().take(40).collect::<String>())),
    }
    Ok(())
}

/// Reads the directory and the branch in which the session started or continued.
fn read_context(data: &RawObject<'_>, about: &mut ImportedMetadata) {
    let text =
        |fields: &RawObject<'_>, name: &str| fields.get_text(name).filter(|text| !text.is_empty()).map(String::from);
    about.model = text(data, "selectedModel").or(about.model.take());
    if let Some(context) = data.get("context").and_then(RawObject::from_value) {
        about.project = about.project.take().or_else(|| text(&context, "cwd"));
        about.branch = text(&context, "branch").or(about.branch.take());
    }
}

/// Returns the session that this one is a copy of.
fn forked_from(data: &RawObject<'_>) -> Option<Uuid> {
    let message = data.get_text("message").filter(|message| message.starts_with("Forked from "))?;
    // Its title is before the id, and the title and the id of this session are behind it.
    message.split("\" (").skip(1).find_map(|part| Uuid::parse_str(part.split(')').next()?).ok())
}

#[cfg(test)]
mod tests;
