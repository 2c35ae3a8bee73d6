//! Builds messages from items. A text and the tool calls after it become one message, so that results directly follow
//! their calls.

use chorus_proto::{NewMessage, Role, Usage};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::json_values::{group_by_kind, import_source, program_source, provider_object};
use super::item::{Item, ParsedContent};
use super::tokens::add_usage;

/// Largest number of results, and of characters in them, that are held back until the token counts of the model call
/// arrive.
const MAX_HELD: (usize, usize) = (256, 8 << 20);

/// Prefixes of text that the program writes in the user's name.
const PROGRAM_PREFIXES: [&str; 6] = [
    "# AGENTS.md instructions",
    "<environment_context>",
    "<skill>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_instructions>",
];

/// Messages under construction.
#[derive(Debug)]
pub(super) struct MessageBuilder {
    now: Timestamp,
    at: Option<Timestamp>,
    open: Option<NewMessage>,
    /// Values that the open message has no field for.
    open_extra_fields: Vec<(String, Box<RawValue>)>,
    /// Values that the next message of the assistant has no field for.
    pending_extra_fields: Vec<(String, Box<RawValue>)>,
    /// Ids and names of the tool calls since the last message with another role.
    calls: Vec<(String, String)>,
    ready: Vec<NewMessage>,
    /// Index in `ready` of the reply whose token counts may still arrive.
    awaiting_usage: Option<usize>,
    /// Token counts that arrived before the reply.
    early_usage: Option<Usage>,
}

impl MessageBuilder {
    pub(super) fn new(now: Timestamp) -> Self {
        let (open_extra_fields, pending_extra_fields, calls, ready) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self {
            now,
            at: None,
            open: None,
            open_extra_fields,
            pending_extra_fields,
            calls,
            ready,
            awaiting_usage: None,
            early_usage: None,
        }
    }

    /// Sets the time of the next items.
    pub(super) fn set_time(&mut self, at: Timestamp) {
        self.at = Some(at);
    }

    /// Returns the time that was set last.
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.at
    }

    /// Returns the complete messages. A reply is held back until its token counts arrive, and its results with it.
    pub(super) fn take_ready(&mut self) -> Vec<NewMessage> {
        let held = &self.ready[self.awaiting_usage.unwrap_or(self.ready.len())..];
        if held.len() > MAX_HELD.0 || held.iter().map(|message| message.content.len()).sum::<usize>() > MAX_HELD.1 {
            self.awaiting_usage = None;
        }
        let rest = self.awaiting_usage.as_mut().map_or(self.ready.len(), std::mem::take);
        self.ready.drain(..rest).collect()
    }

    /// Adds token counts to the open reply, to the reply before its results, or to the next reply.
    pub(super) fn add_usage(&mut self, usage: Usage) {
        if let Some(open) = &mut self.open {
            open.usage = Some(add_usage(open.usage.take(), usage));
        } else if let Some(reply) = self.awaiting_usage.take().and_then(|at| self.ready.get_mut(at)) {
            reply.usage = Some(usage);
        } else {
            self.early_usage = Some(add_usage(self.early_usage.take(), usage));
        }
    }

    /// Completes all messages at the end of the file.
    pub(super) fn finish(&mut self) {
        if !self.pending_extra_fields.is_empty() {
            self.open_reply();
        }
        self.close_reply();
        self.awaiting_usage = None;
    }

    /// Adds an item.
    pub(super) fn add_item(&mut self, item: Item) {
        match item {
            Item::Message { id, role: Role::Assistant, content } => {
                self.close_reply();
                let open = self.open_reply();
                open.id = id;
                set_content(open, content);
            }
            Item::Message { id, role, content } => {
                let mut message = self.new_message(role);
                message.id = id;
                if role == Role::User && PROGRAM_PREFIXES.iter().any(|mark| content.text.trim_start().starts_with(mark))
                {
                    message.source = Some(program_source("codex"));
                }
                set_content(&mut message, content);
                self.add_message(message);
            }
            Item::Call(call) => {
                self.calls.push((call.id.clone(), call.name.clone()));
                self.open_reply().tool_calls.push(call);
            }
            Item::Output { call, content, failed } => {
                let mut message = self.new_message(Role::ToolResult);
                message.name = self.calls.iter().rfind(|(id, _)| *id == call).map(|(_, name)| name.clone());
                message.tool_call_id = Some(call);
                message.is_error = failed;
                set_content(&mut message, content);
                self.add_message(message);
            }
            Item::Other { kind, raw } => self.pending_extra_fields.push((kind, raw)),
            Item::Ignored => {}
        }
    }

    /// Adds a complete message.
    pub(super) fn add_message(&mut self, mut message: NewMessage) {
        message.timestamp = message.timestamp.or(self.at);
        if message.role != Role::ToolResult {
            self.finish();
            self.calls.clear();
        }
        self.close_reply();
        self.ready.push(message);
    }

    fn new_message(&self, role: Role) -> NewMessage {
        let mut message = NewMessage::text(role, "");
        message.source = Some(import_source("codex"));
        message.timestamp = Some(self.at.unwrap_or(self.now));
        message
    }

    /// Returns the open message of the assistant, opening one if needed, and adds the values kept for it.
    fn open_reply(&mut self) -> &mut NewMessage {
        self.open_extra_fields.append(&mut self.pending_extra_fields);
        let message = self.open.take().unwrap_or_else(|| {
            self.awaiting_usage = None;
            let usage = self.early_usage.take();
            NewMessage { usage, ..self.new_message(Role::Assistant) }
        });
        self.open.insert(message)
    }

    fn close_reply(&mut self) {
        let Some(mut message) = self.open.take() else { return };
        message.provider = provider_object("codex", &group_by_kind(std::mem::take(&mut self.open_extra_fields)));
        if message.usage.is_none() {
            self.awaiting_usage = Some(self.ready.len());
        }
        self.ready.push(message);
    }
}

fn set_content(message: &mut NewMessage, content: ParsedContent) {
    message.content = content.text;
    message.attachments = content.attachments;
}
