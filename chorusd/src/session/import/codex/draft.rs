//! Items become messages: a text and the calls after it are one, so that results directly follow their calls.

use chorus_proto::{NewMessage, Role};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::values::{grouped, provider, source};
use super::item::{Content, Item};

/// Messages that are being put together.
#[derive(Debug)]
pub(super) struct Drafts {
    now: Timestamp,
    at: Option<Timestamp>,
    open: Option<NewMessage>,
    /// What has no place in the open message.
    kept: Vec<(String, Box<RawValue>)>,
    /// The same for what the assistant says next.
    others: Vec<(String, Box<RawValue>)>,
    /// Ids and names of the calls since the last message of anybody else.
    calls: Vec<(String, String)>,
    ready: Vec<NewMessage>,
}

impl Drafts {
    pub fn new(now: Timestamp) -> Self {
        Self { now, at: None, open: None, kept: Vec::new(), others: Vec::new(), calls: Vec::new(), ready: Vec::new() }
    }

    /// The time of what comes next.
    pub fn at(&mut self, at: Timestamp) {
        self.at = Some(at);
    }

    /// The time of what came last.
    pub fn time(&self) -> Option<Timestamp> {
        self.at
    }

    /// Messages that are whole.
    pub fn ready(&mut self) -> Vec<NewMessage> {
        std::mem::take(&mut self.ready)
    }

    /// Nothing follows.
    pub fn end(&mut self) {
        if !self.others.is_empty() {
            self.assistant();
        }
        self.close();
    }

    /// Takes an item.
    pub fn item(&mut self, item: Item) {
        match item {
            Item::Message { id, role: Role::Assistant, content } => {
                self.close();
                let open = self.assistant();
                open.id = id;
                fill(open, content);
            }
            Item::Message { id, role, content } => {
                let mut message = self.new_message(role);
                message.id = id;
                fill(&mut message, content);
                self.message(message);
            }
            Item::Call(call) => {
                self.calls.push((call.id.clone(), call.name.clone()));
                self.assistant().tool_calls.push(call);
            }
            Item::Output { call, content, failed } => {
                let mut message = self.new_message(Role::ToolResult);
                message.name = self.calls.iter().rfind(|(id, _)| *id == call).map(|(_, name)| name.clone());
                message.tool_call_id = Some(call);
                message.is_error = failed;
                fill(&mut message, content);
                self.message(message);
            }
            Item::Other { kind, raw } => self.others.push((kind, raw)),
            Item::Nothing => {}
        }
    }

    /// Takes a message that is whole.
    pub fn message(&mut self, mut message: NewMessage) {
        message.timestamp = message.timestamp.or(self.at);
        if message.role != Role::ToolResult {
            self.end();
            self.calls.clear();
        }
        self.close();
        self.ready.push(message);
    }

    fn new_message(&self, role: Role) -> NewMessage {
        let mut message = NewMessage::text(role, "");
        message.source = Some(source("codex"));
        message.timestamp = Some(self.at.unwrap_or(self.now));
        message
    }

    /// The open message of the assistant, with what was kept for it.
    fn assistant(&mut self) -> &mut NewMessage {
        self.kept.append(&mut self.others);
        let message = self.open.take().unwrap_or_else(|| self.new_message(Role::Assistant));
        self.open.insert(message)
    }

    fn close(&mut self) {
        let Some(mut message) = self.open.take() else { return };
        message.provider = provider("codex", &grouped(std::mem::take(&mut self.kept)));
        self.ready.push(message);
    }
}

fn fill(message: &mut NewMessage, content: Content) {
    message.content = content.text;
    message.attachments = content.attachments;
}
