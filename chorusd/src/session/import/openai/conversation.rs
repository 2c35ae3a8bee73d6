//! Entry after entry becomes sessions: plain messages share one, a `{"messages": […]}` is one of its own.

use std::io;

use super::super::fields::{Fields, list};
use super::super::sink::About;
use super::super::writer::Writer;
use super::message::message;
use chorus_proto::{Message, Role};

/// The conversation that is being read.
pub(super) struct Conversation<'w, 'a> {
    writer: &'w mut Writer<'a>,
    about: About,
    /// Ids and names of calls that have no result yet.
    calls: Vec<(String, String)>,
}

impl<'w, 'a> Conversation<'w, 'a> {
    pub fn new(writer: &'w mut Writer<'a>) -> Self {
        Self { writer, about: About::default(), calls: Vec::new() }
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
        let Some(nested) = nested else { return self.one(number, None, &fields) };
        self.end()?;
        self.model(fields.parse("model"));
        for (at, raw) in nested.into_iter().enumerate() {
            match Fields::of(raw) {
                Some(fields) => self.one(number, Some(at + 1), &fields)?,
                None => self.writer.skip(number, format!("message {}: not a JSON object", at + 1)),
            }
        }
        self.end()
    }

    fn one(&mut self, number: u64, nested: Option<usize>, fields: &Fields<'_>) -> io::Result<()> {
        match message(fields, self.writer.now, self.writer.new_id) {
            Ok(mut message) => {
                self.follow(&mut message);
                self.writer.message(&message)
            }
            Err(reason) => {
                let place = nested.map_or(String::new(), |at| format!("message {at}: "));
                self.writer.skip(number, format!("{place}{reason}"));
                Ok(())
            }
        }
    }

    /// Gives a result the name of its tool, where the call before it told.
    fn follow(&mut self, message: &mut Message) {
        match message.role {
            Role::Assistant => {
                self.calls.clear();
                self.calls.extend(message.tool_calls.iter().map(|call| (call.id.clone(), call.name.clone())));
            }
            Role::ToolResult if message.name.is_none() => {
                let call = self.calls.iter().find(|(id, _)| Some(id) == message.tool_call_id.as_ref());
                message.name = call.map(|(_, name)| name.clone());
            }
            _ => {}
        }
    }
}
