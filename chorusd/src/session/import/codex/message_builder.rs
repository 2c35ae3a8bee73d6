//! Items become messages: a text and the calls after it are one, so that results directly follow their calls.

use chorus_proto::{NewMessage, Role, Usage};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::json_values::{group_by_kind, import_source, program_source, provider_object};
use super::item::{Item, ParsedContent};
use super::tokens::add_usage;

/// So many results, and characters of them, wait for the tokens of the call before them.
const MAX_HELD: (usize, usize) = (256, 8 << 20);

/// What the program writes in the user's name begins so.
const PROGRAM_PREFIXES: [&str; 6] = [
    "# AGENTS.md instructions",
    "<environment_context>",
    "<skill>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_instructions>",
];

/// Messages that are being put together.
#[derive(Debug)]
pub(super) struct MessageBuilder {
    now: Timestamp,
    at: Option<Timestamp>,
    open: Option<NewMessage>,
    /// What has no place in the open message.
    open_extra_fields: Vec<(String, Box<RawValue>)>,
    /// The same for what the assistant says next.
    pending_extra_fields: Vec<(String, Box<RawValue>)>,
    /// Ids and names of the calls since the last message of anybody else.
    calls: Vec<(String, String)>,
    ready: Vec<NewMessage>,
    /// The reply in `ready` whose tokens may still be told.
    awaiting_usage: Option<usize>,
    /// Tokens that were told before what the call said.
    early_usage: Option<Usage>,
}

impl MessageBuilder {
    pub fn new(now: Timestamp) -> Self {
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

    /// The time of what comes next.
    pub fn set_time(&mut self, at: Timestamp) {
        self.at = Some(at);
    }

    /// The time of what came last.
    pub fn time(&self) -> Option<Timestamp> {
        self.at
    }

    /// Messages that are whole. A reply waits for its tokens, and what answers it with it.
    pub fn take_ready(&mut self) -> Vec<NewMessage> {
        let held = &self.ready[self.awaiting_usage.unwrap_or(self.ready.len())..];
        if held.len() > MAX_HELD.0 || held.iter().map(|message| message.content.len()).sum::<usize>() > MAX_HELD.1 {
            self.awaiting_usage = None;
        }
        let rest = self.awaiting_usage.as_mut().map_or(self.ready.len(), std::mem::take);
        self.ready.drain(..rest).collect()
    }

    /// Takes what a call cost: of the reply that is open, of the one before its results, or of what comes next.
    pub fn add_usage(&mut self, usage: Usage) {
        if let Some(open) = &mut self.open {
            open.usage = Some(add_usage(open.usage.take(), usage));
        } else if let Some(reply) = self.awaiting_usage.take().and_then(|at| self.ready.get_mut(at)) {
            reply.usage = Some(usage);
        } else {
            self.early_usage = Some(add_usage(self.early_usage.take(), usage));
        }
    }

    /// Nothing follows.
    pub fn finish(&mut self) {
        if !self.pending_extra_fields.is_empty() {
            self.open_reply();
        }
        self.close_reply();
        self.awaiting_usage = None;
    }

    /// Takes an item.
    pub fn add_item(&mut self, item: Item) {
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

    /// Takes a message that is whole.
    pub fn add_message(&mut self, mut message: NewMessage) {
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

    /// The open message of the assistant, with what was kept for it.
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
