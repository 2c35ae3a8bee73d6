//! One entry becomes messages: what tools answered each one of its own, and what was said.

use std::io;

use chorus_proto::{NewMessage, Role};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::fields::{Fields, list, text};
use super::super::values::{grouped, one_line, provider, source, squeeze, timestamp};
use super::super::writer::Writer;
use super::block::Block;

/// Fields that have a place in a message, or say nothing about the conversation; any other is kept in `provider`.
const PLACED: [&str; 4] = ["role", "created", "content", "id"];

/// What every message has that both the person and the model see.
const USUAL: &str = r#"{"userVisible":true,"agentVisible":true}"#;

/// The messages, one after the other.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// Ids and names of calls that have no result yet.
    calls: Vec<(String, String)>,
}

/// An entry that was read.
struct Entry {
    id: Option<String>,
    at: Option<Timestamp>,
    results: Vec<NewMessage>,
    said: NewMessage,
    /// Blocks without a place.
    others: Vec<(String, Box<RawValue>)>,
    /// Fields without a place.
    kept: Vec<(String, Box<RawValue>)>,
}

impl Messages {
    /// Takes the entry with this number.
    pub fn take(&mut self, number: u64, fields: &Fields<'_>, writer: &mut Writer<'_>) -> io::Result<()> {
        let Entry { mut id, at, results, mut said, mut others, kept } = match self.read(fields) {
            Ok(entry) => entry,
            Err(reason) => {
                writer.skip(number, reason);
                return Ok(());
            }
        };
        let at = at.unwrap_or(writer.now);
        let speaks = !said.content.is_empty() || !said.tool_calls.is_empty() || !said.attachments.is_empty();
        let speaks = speaks || !others.is_empty() || results.is_empty();
        others.extend(kept);
        for mut result in results {
            if !speaks {
                // The entry is this result.
                result.id = id.take();
                result.provider = provider("goose", &grouped(std::mem::take(&mut others)));
            }
            let result = result.complete(&mut *writer.new_id, at);
            writer.message(&result)?;
        }
        if speaks {
            said.id = id;
            said.provider = provider("goose", &grouped(others));
            let said = said.complete(&mut *writer.new_id, at);
            writer.message(&said)?;
        }
        Ok(())
    }

    fn read(&mut self, fields: &Fields<'_>) -> Result<Entry, String> {
        let role = match fields.text("role").ok_or("no role")?.to_ascii_lowercase().as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            other => return Err(format!("unknown role {:?}", other.chars().take(40).collect::<String>())),
        };
        let content = fields.get("content").ok_or("no content")?;
        let mut entry = Entry {
            id: fields.text("id").filter(|id| !id.is_empty()).map(Into::into),
            at: fields.get("created").and_then(timestamp),
            results: Vec::new(),
            said: imported(role),
            others: Vec::new(),
            kept: kept(fields),
        };
        let mut texts: Vec<String> = Vec::new();
        if let Some(text) = text(content) {
            texts.push(text.into_owned());
        } else {
            for raw in list(content).ok_or("content is neither text nor a list of blocks")? {
                self.block(raw, &mut entry, &mut texts);
            }
        }
        entry.said.content = texts.join("\n");
        Ok(entry)
    }

    fn block(&mut self, raw: &RawValue, entry: &mut Entry, texts: &mut Vec<String>) {
        match Block::read(raw, entry.said.attachments.len() + 1) {
            Block::Text(text) => texts.push(text),
            Block::Picture(picture) => entry.said.attachments.push(picture),
            Block::Call(call) => {
                self.calls.push((call.id.clone(), call.name.clone()));
                entry.said.tool_calls.push(call);
            }
            Block::Answer { call, text, attachments, failed } => {
                let at = self.calls.iter().rposition(|(id, _)| *id == call);
                let name = at.map(|at| self.calls.remove(at).1);
                entry.results.push(NewMessage {
                    content: text,
                    attachments,
                    name,
                    tool_call_id: Some(call),
                    is_error: failed,
                    ..imported(Role::ToolResult)
                });
            }
            Block::Other(kind) => entry.others.push((kind, one_line(raw))),
        }
    }
}

fn imported(role: Role) -> NewMessage {
    NewMessage { source: Some(source("goose")), ..NewMessage::text(role, "") }
}

/// Fields without a place.
fn kept(fields: &Fields<'_>) -> Vec<(String, Box<RawValue>)> {
    let without = fields.iter().filter(|(key, value)| !PLACED.contains(key) && value.get() != "null");
    let unusual = without.filter(|(key, value)| *key != "metadata" || !matches!(&*squeeze(value.get()), "{}" | USUAL));
    unusual.map(|(key, value)| (key.to_owned(), one_line(value))).collect()
}
