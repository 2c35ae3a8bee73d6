//! One entry of a transcript that holds a message together with the results of its tool calls.

use std::io;

use chorus_proto::{Attachment, NewMessage, Role, ToolCall, Usage};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::json_values::{group_by_kind, import_source, program_source, provider_object};
use super::writer::SessionWriter;

/// The result of a tool call.
#[derive(Debug, Default)]
pub(super) struct CallResult {
    pub call: String,
    /// Name of the tool.
    pub name: Option<String>,
    pub text: String,
    pub attachments: Vec<Attachment>,
    pub is_error: bool,
    pub at: Option<Timestamp>,
}

/// Entries of a reply in which texts, tool calls and results alternate: after results, another entry begins.
#[derive(Debug)]
pub(super) struct TurnSequence {
    entries: Vec<TurnEntry>,
    /// Ids and names of calls without a result.
    open_calls: Vec<(String, String)>,
    call_count: usize,
}

impl TurnSequence {
    /// Begins with an entry that has the role, id and time of all.
    pub(super) fn new(first: TurnEntry) -> Self {
        Self { entries: vec![first], open_calls: Vec::new(), call_count: 0 }
    }

    /// Returns the entry to which more can be added.
    pub(super) fn current(&mut self) -> &mut TurnEntry {
        let count = self.entries.len();
        if !self.entries[count - 1].results.is_empty() {
            let first = &self.entries[0];
            let id = first.id.as_ref().map(|id| format!("{id}/{count}"));
            let next = TurnEntry { id, at: first.at, ..TurnEntry::new(first.program, first.role) };
            self.entries.push(next);
        }
        let end = self.entries.len() - 1;
        &mut self.entries[end]
    }

    /// Adds a tool call. One without an id gets its number.
    pub(super) fn add_call(&mut self, mut call: ToolCall) {
        self.call_count += 1;
        if call.id.is_empty() {
            let message = self.entries[0].id.as_deref().unwrap_or("call");
            call.id = format!("{message}/{}", self.call_count);
        }
        self.open_calls.push((call.id.clone(), call.name.clone()));
        self.current().calls.push(call);
    }

    /// Adds a result. One that names no call belongs to the oldest call of its tool that has none.
    pub(super) fn add_result(&mut self, mut result: CallResult) {
        let open = self.open_calls.iter().position(|(id, name)| match result.call.as_str() {
            "" => result.name.as_ref().is_none_or(|named| named == name),
            named => named == id,
        });
        if let Some(open) = open {
            let (id, name) = self.open_calls.remove(open);
            result.call = id;
            result.name.get_or_insert(name);
        }
        let end = self.entries.len() - 1;
        self.entries[end].results.push(result);
    }

    /// Returns the entries in order.
    pub(super) fn into_entries(self) -> Vec<TurnEntry> {
        self.entries
    }
}

/// An entry of a transcript.
#[derive(Debug)]
pub(super) struct TurnEntry {
    /// The program that wrote the transcript.
    pub program: &'static str,
    pub role: Role,
    /// The program wrote the text in the user's name.
    pub by_program: bool,
    pub id: Option<String>,
    pub at: Option<Timestamp>,
    pub texts: Vec<String>,
    pub attachments: Vec<Attachment>,
    pub calls: Vec<ToolCall>,
    pub results: Vec<CallResult>,
    pub usage: Option<Usage>,
    /// The model that wrote it, with its provider if that is known.
    pub model: Option<String>,
    /// Tokens of the input that were written to the cache.
    pub cache_write: u64,
    /// Values that a message has no field for, with their kinds.
    pub extra: Vec<(String, Box<RawValue>)>,
}

impl TurnEntry {
    pub(super) fn new(program: &'static str, role: Role) -> Self {
        Self {
            program,
            role,
            by_program: false,
            id: None,
            at: None,
            texts: Vec::new(),
            attachments: Vec::new(),
            calls: Vec::new(),
            results: Vec::new(),
            usage: None,
            model: None,
            cache_write: 0,
            extra: Vec::new(),
        }
    }

    /// Returns whether there is no message, only results.
    fn is_silent(&self) -> bool {
        self.texts.iter().all(|text| text.trim().is_empty())
            && self.attachments.is_empty()
            && self.calls.is_empty()
            && self.extra.is_empty()
    }

    /// Writes the message, then a message for each result.
    pub(super) fn write(mut self, writer: &mut SessionWriter<'_>) -> io::Result<()> {
        let at = self.at.unwrap_or(writer.now);
        let mut count = 0;
        let id = self.id.take();
        let mut next_id = |writer: &mut SessionWriter<'_>| {
            count += 1;
            match &id {
                Some(id) if count == 1 => id.clone(),
                Some(id) => format!("{id}-{count}"),
                None => (writer.new_id)(),
            }
        };
        if !self.is_silent() {
            let mut message = NewMessage::text(self.role, self.texts.join("\n\n"));
            message.source =
                Some(if self.by_program { program_source(self.program) } else { import_source(self.program) });
            message.attachments = self.attachments;
            message.tool_calls = self.calls;
            message.usage = self.usage.filter(|usage| *usage != Usage::default());
            message.provider = provider_object(self.program, &group_by_kind(self.extra));
            let id = next_id(writer);
            let (model, cache_write) = (self.model, self.cache_write);
            writer.write_reply(&message.complete(|| id, at), |call| {
                (call.model, call.cache_write_tokens) = (model.map(Into::into), cache_write);
            })?;
        }
        for result in self.results {
            let mut message = NewMessage::text(Role::ToolResult, result.text);
            message.source = Some(import_source(self.program));
            message.attachments = result.attachments;
            message.is_error = result.is_error;
            message.name = result.name;
            message.tool_call_id = Some(result.call);
            let id = next_id(writer);
            writer.write_message(&message.complete(|| id, result.at.unwrap_or(at)))?;
        }
        Ok(())
    }
}
