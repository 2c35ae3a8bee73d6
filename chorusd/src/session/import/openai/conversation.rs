//! Entry after entry becomes sessions: plain messages share one, a `{"messages": […]}` is one of its own.

use std::io;

use super::super::fields::{Fields, list};
use super::super::sink::About;
use super::super::values::{kept_beside, source, timestamp};
use super::super::writer::Writer;
use super::entry::Entry;
use super::message::messages;
use super::{blocks, content};
use chorus_proto::{Message, NewMessage, Role};
use serde_json::value::RawValue;

/// The conversation that is being read.
pub(super) struct Conversation<'w, 'a> {
    writer: &'w mut Writer<'a>,
    about: About,
    /// Ids and names of calls that have no result yet.
    calls: Vec<(String, String)>,
    /// What a program says of its session, kept with the message that comes next.
    start: Option<Box<RawValue>>,
}

impl<'w, 'a> Conversation<'w, 'a> {
    pub fn new(writer: &'w mut Writer<'a>) -> Self {
        Self { writer, about: About::default(), calls: Vec::new(), start: None }
    }

    pub fn progress(&mut self, bytes: u64) {
        self.writer.sink.progress(bytes);
    }

    pub fn model(&mut self, model: Option<String>) {
        self.about.model = model.or(self.about.model.take());
    }

    /// Ends the session, if one is open.
    pub fn end(&mut self) -> io::Result<()> {
        self.calls.clear();
        self.start = None;
        self.writer.end(std::mem::take(&mut self.about))
    }

    /// One entry of a list, or one line.
    pub fn entry(&mut self, number: u64, bytes: Result<&[u8], &str>) -> io::Result<()> {
        let fields = match bytes.map_err(str::to_owned).and_then(Fields::read) {
            Ok(fields) => fields,
            Err(reason) => {
                self.writer.skip(number, reason);
                return Ok(());
            }
        };
        let nested = fields.get("messages").filter(|_| !fields.has("role")).and_then(list);
        let Some(nested) = nested else { return self.one(number, None, fields) };
        self.end()?;
        self.described(&fields);
        if let Some(system) = fields.get("system").or_else(|| fields.get("system_prompt")) {
            self.system(system)?;
        }
        for (at, raw) in nested.into_iter().enumerate() {
            match Fields::of(raw) {
                Some(fields) => self.one(number, Some(at + 1), fields)?,
                None => self.writer.skip(number, format!("message {}: not a JSON object", at + 1)),
            }
        }
        self.end()
    }

    /// The instructions of a request, which stand beside its messages.
    pub fn system(&mut self, raw: &RawValue) -> io::Result<()> {
        let text = content::read(Some(raw)).map(|content| content.text).unwrap_or_default();
        if text.trim().is_empty() {
            return Ok(());
        }
        let message = NewMessage { source: Some(source(blocks::FORMAT)), ..NewMessage::text(Role::System, text) };
        let message = message.complete(&mut *self.writer.new_id, self.writer.now);
        self.writer.message(&message)
    }

    fn one(&mut self, number: u64, nested: Option<usize>, fields: Fields<'_>) -> io::Result<()> {
        let fields = match Entry::read(fields) {
            Entry::Message(fields) => fields,
            Entry::Start(fields) => {
                self.described(&fields);
                self.start = fields.whole();
                return Ok(());
            }
            Entry::Note => return Ok(()),
        };
        match messages(&fields, self.writer.now, self.writer.new_id) {
            Ok(messages) => {
                for mut message in messages {
                    self.follow(&mut message);
                    if let Some(start) = self.start.take() {
                        message.provider = kept_beside(message.provider.take(), "session", &start);
                    }
                    self.writer.message(&message)?;
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

    /// Notes what is said of the session as a whole.
    fn described(&mut self, fields: &Fields<'_>) {
        self.model(fields.parse("model"));
        let about = &mut self.about;
        about.id = about.id.or_else(|| fields.text("id").and_then(|id| id.parse().ok()));
        let started = ["started_at", "timestamp"].iter().find_map(|name| fields.get(name).and_then(timestamp));
        about.started_at = about.started_at.or(started);
        let title = fields.text("title").map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
        about.description = about.description.take().or(title);
    }

    /// Gives a result the name of its tool, where the call before it told.
    fn follow(&mut self, message: &mut Message) {
        match message.role {
            Role::Assistant => {
                self.calls.clear();
                self.calls.extend(message.tool_calls.iter().map(|call| (call.id.clone(), call.name.clone())));
            }
            Role::ToolResult if message.name.is_none() => {
                let at = self.calls.iter().position(|(id, _)| Some(id) == message.tool_call_id.as_ref());
                message.name = at.map(|at| self.calls[at].1.clone());
                // Calls without an id are answered in their order.
                if let Some(at) = at.filter(|at| self.calls[*at].0.is_empty()) {
                    self.calls.remove(at);
                }
            }
            _ => {}
        }
    }
}
