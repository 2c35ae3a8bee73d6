//! One conversation becomes one session.

use std::io;

use chorus_proto::{NewMessage, Role};
use serde_json::value::RawValue;

use super::super::fields::Fields;
use super::super::sink::About;
use super::super::values::{grouped, one_line, provider, source, timestamp};
use super::super::writer::Writer;
use super::{is_conversation, message, tree};

/// Reads the conversation with this number.
pub(super) fn read(number: u64, bytes: Result<&[u8], &str>, writer: &mut Writer<'_>) -> io::Result<()> {
    let fields = match bytes.map_err(str::to_owned).and_then(Fields::read) {
        Ok(fields) if is_conversation(&fields) => fields,
        Ok(_) => {
            writer.skip(number, "not a conversation: it has no mapping");
            return Ok(());
        }
        Err(reason) => {
            writer.skip(number, reason);
            return Ok(());
        }
    };
    let Some(mapping) = fields.get("mapping").and_then(Fields::of) else {
        writer.skip(number, "the mapping cannot be read");
        return Ok(());
    };
    let id = fields.text("conversation_id").or_else(|| fields.text("id"));
    let about = About {
        id: id.and_then(|id| id.parse().ok()),
        description: fields.text("title").filter(|title| !title.trim().is_empty()).map(Into::into),
        started_at: fields.get("create_time").and_then(timestamp),
        saved_at: fields.get("update_time").and_then(timestamp),
        model: fields.text("default_model_slug").map(Into::into),
        ..About::default()
    };
    let mut talk = Talk { number, about, calls: Vec::new(), others: Vec::new(), beside: 0 };
    for step in tree::path(&mapping, fields.text("current_node").as_deref()) {
        talk.step(step, writer)?;
    }
    talk.end(writer)
}

/// The conversation as far as it was read.
struct Talk {
    number: u64,
    about: About,
    /// Ids and names of calls, the newest last.
    calls: Vec<(String, String)>,
    /// What is kept for the next message: thoughts, and nodes of other branches.
    others: Vec<(String, Box<RawValue>)>,
    beside: u64,
}

impl Talk {
    fn step(&mut self, step: tree::Step<'_>, writer: &mut Writer<'_>) -> io::Result<()> {
        let read = match step.message.map(message::read).transpose() {
            Ok(read) => read,
            Err(reason) => {
                writer.skip(self.number, reason);
                None
            }
        };
        self.beside += step.beside.len() as u64;
        let branches = step.beside.iter().map(|raw| ("branches".to_owned(), one_line(raw)));
        let Some(read) = read else {
            self.others.extend(branches);
            return Ok(());
        };
        self.about.model = read.model.or(self.about.model.take());
        if read.silent {
            // An empty root, or thoughts: they belong to what is said next.
            self.others.extend(read.others);
            self.others.extend(branches);
            return Ok(());
        }
        let mut message = read.message;
        let mut others = std::mem::take(&mut self.others);
        others.extend(read.others);
        others.extend(branches);
        message.provider = provider("chatgpt", &grouped(others));
        self.write(message, writer)
    }

    fn write(&mut self, mut message: NewMessage, writer: &mut Writer<'_>) -> io::Result<()> {
        self.calls.extend(message.tool_calls.iter().map(|call| (call.id.clone(), call.name.clone())));
        if message.role == Role::ToolResult {
            message.tool_call_id = self.answered(message.name.as_deref());
        }
        let at = message.timestamp.or(self.about.started_at).unwrap_or(writer.now);
        let message = message.complete(&mut *writer.new_id, at);
        writer.message(&message)
    }

    /// The call that a tool of this name answers: `browser` answers `browser.search`.
    fn answered(&mut self, name: Option<&str>) -> Option<String> {
        let name = name?;
        let of = |called: &str| called == name || called.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        self.calls.iter().rfind(|(_, called)| of(called)).map(|(id, _)| id.clone())
    }

    fn end(mut self, writer: &mut Writer<'_>) -> io::Result<()> {
        let left = std::mem::take(&mut self.others);
        if !left.is_empty() {
            let mut message = NewMessage::text(Role::Assistant, "");
            message.source = Some(source("chatgpt"));
            message.provider = provider("chatgpt", &grouped(left));
            self.write(message, writer)?;
        }
        if self.beside > 0 {
            let (count, number) = (self.beside, self.number);
            let (messages, are) = if count == 1 { ("message", "is") } else { ("messages", "are") };
            let reason = format!(
                "{count} {messages} of other branches (regenerated or edited) {are} no part of the conversation, and kept in \
                 `provider` of the message before"
            );
            writer.skip(number, reason);
        }
        writer.end(self.about)
    }
}
