//! Groups entries into sessions: single messages share one, and each `{"messages": […]}` is one of its own.

use std::io;

use chorus_proto::{Message, NewMessage, Role};
use serde_json::value::RawValue;

use super::super::json_values::{add_provider_field, import_source, parse_timestamp};
use super::super::raw_object::{RawObject, list_entries};
use super::super::sink::ImportedMetadata;
use super::super::writer::SessionWriter;
use super::entry::EntryKind;
use super::message::parse_messages;
use super::{anthropic_messages, content};

/// The conversation that is being read.
pub(super) struct ConversationReader<'w, 'a> {
    writer: &'w mut SessionWriter<'a>,
    about: ImportedMetadata,
    /// Ids and names of tool calls that have no result yet.
    calls: Vec<(String, String)>,
    /// A program's description of the session, which is kept with the next message.
    session_start: Option<Box<RawValue>>,
}

impl<'w, 'a> ConversationReader<'w, 'a> {
    pub(super) fn new(writer: &'w mut SessionWriter<'a>) -> Self {
        Self { writer, about: ImportedMetadata::default(), calls: Vec::new(), session_start: None }
    }

    pub(super) fn report_progress(&mut self, bytes: u64) {
        self.writer.sink.report_progress(bytes);
    }

    pub(super) fn set_model(&mut self, model: Option<String>) {
        self.about.model = model.or(self.about.model.take());
    }

    /// Ends the session if one is open.
    pub(super) fn end_session(&mut self) -> io::Result<()> {
        self.calls.clear();
        self.session_start = None;
        self.writer.end_session(std::mem::take(&mut self.about))
    }

    /// Adds an entry of a list, or a line.
    pub(super) fn add_entry(&mut self, number: u64, bytes: Result<&[u8], &str>) -> io::Result<()> {
        let fields = match bytes.map_err(str::to_owned).and_then(RawObject::from_bytes) {
            Ok(fields) => fields,
            Err(reason) => {
                self.writer.skip(number, reason);
                return Ok(());
            }
        };
        let nested = fields.get("messages").filter(|_| !fields.has("role")).and_then(list_entries);
        let Some(nested) = nested else { return self.add_message(number, None, fields) };
        self.end_session()?;
        self.update_metadata(&fields);
        if let Some(system) = fields.get("system").or_else(|| fields.get("system_prompt")) {
            self.add_system_prompt(system)?;
        }
        for (at, raw) in nested.into_iter().enumerate() {
            match RawObject::from_value(raw) {
                Some(fields) => self.add_message(number, Some(at + 1), fields)?,
                None => self.writer.skip(number, format!("message {}: not a JSON object", at + 1)),
            }
        }
        self.end_session()
    }

    /// Adds the system prompt of a request, which is not one of its messages.
    pub(super) fn add_system_prompt(&mut self, raw: &RawValue) -> io::Result<()> {
        let text = content::parse(Some(raw)).map(|content| content.text).unwrap_or_default();
        if text.trim().is_empty() {
            return Ok(());
        }
        let message = NewMessage {
            source: Some(import_source(anthropic_messages::SOURCE_FORMAT)),
            ..NewMessage::text(Role::System, text)
        };
        let message = message.complete(&mut *self.writer.new_id, self.writer.now);
        self.writer.write_message(&message)
    }

    fn add_message(&mut self, number: u64, nested: Option<usize>, fields: RawObject<'_>) -> io::Result<()> {
        let fields = match EntryKind::classify(fields) {
            EntryKind::Message(fields) => fields,
            EntryKind::SessionStart(fields) => {
                self.update_metadata(&fields);
                self.session_start = fields.to_raw_value();
                return Ok(());
            }
            EntryKind::Ignored => return Ok(()),
        };
        match parse_messages(&fields, self.writer.now, self.writer.new_id) {
            Ok(messages) => {
                for mut message in messages {
                    self.set_tool_name(&mut message);
                    if let Some(start) = self.session_start.take() {
                        message.provider = add_provider_field(message.provider.take(), "session", &start);
                    }
                    self.writer.write_message(&message)?;
                }
                Ok(())
            }
            Err(reason) => {
                let place = nested.map_or(String::new(), |at| format!("message {at}: "));
                self.writer.skip(number, format!("{place}{reason}"));
                Ok(())
            }
        }
    }

    /// Updates the session's metadata from an object.
    fn update_metadata(&mut self, fields: &RawObject<'_>) {
        self.set_model(fields.get_parsed("model"));
        let about = &mut self.about;
        about.id = about.id.or_else(|| fields.get_text("id").and_then(|id| id.parse().ok()));
        let text = |name: &str| fields.get_text(name).filter(|text| !text.trim().is_empty()).map(String::from);
        about.conversation = about.conversation.take().or_else(|| text("id")).or_else(|| text("session_id"));
        about.project = about.project.take().or_else(|| text("cwd"));
        let started = ["started_at", "timestamp"].iter().find_map(|name| fields.get(name).and_then(parse_timestamp));
        about.started_at = about.started_at.or(started);
        let title = fields.get_text("title").map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
        about.description = about.description.take().or(title);
    }

    /// Sets the tool name of a result from the call before it.
    fn set_tool_name(&mut self, message: &mut Message) {
        match message.role {
            Role::Assistant => {
                self.calls.clear();
                self.calls.extend(message.tool_calls.iter().map(|call| (call.id.clone(), call.name.clone())));
            }
            Role::ToolResult if message.name.is_none() => {
                let at = self.calls.iter().position(|(id, _)| Some(id) == message.tool_call_id.as_ref());
                message.name = at.map(|at| self.calls[at].1.clone());
                // Calls without ids are matched with results in order.
                if let Some(at) = at.filter(|at| self.calls[*at].0.is_empty()) {
                    self.calls.remove(at);
                }
            }
            _ => {}
        }
    }
}
