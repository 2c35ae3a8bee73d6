//! Items become messages: a text and the calls after it are one, so that results directly follow their calls.

use chorus_proto::{NewMessage, Role, Usage};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::values::{by_program, grouped, provider, source};
use super::item::{Content, Item};
use super::tokens::sum;

/// So many results, and characters of them, wait for the tokens of the call before them.
const HELD: (usize, usize) = (256, 8 << 20);

/// What the program writes in the user's name begins so.
const MARKS: [&str; 6] = [
    "# AGENTS.md instructions",
    "<environment_context>",
    "<skill>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_instructions>",
];

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
    /// The reply in `ready` whose tokens may still be told.
    unpriced: Option<usize>,
    /// Tokens that were told before what the call said.
    early: Option<Usage>,
}

impl Drafts {
    pub fn new(now: Timestamp) -> Self {
        let (kept, others, calls, ready) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { now, at: None, open: None, kept, others, calls, ready, unpriced: None, early: None }
    }

    /// The time of what comes next.
    pub fn at(&mut self, at: Timestamp) {
        self.at = Some(at);
    }

    /// The time of what came last.
    pub fn time(&self) -> Option<Timestamp> {
        self.at
    }

    /// Messages that are whole. A reply waits for its tokens, and what answers it with it.
    pub fn ready(&mut self) -> Vec<NewMessage> {
        let held = &self.ready[self.unpriced.unwrap_or(self.ready.len())..];
        if held.len() > HELD.0 || held.iter().map(|message| message.content.len()).sum::<usize>() > HELD.1 {
            self.unpriced = None;
        }
        let rest = self.unpriced.as_mut().map_or(self.ready.len(), std::mem::take);
        self.ready.drain(..rest).collect()
    }

    /// Takes what a call cost: of the reply that is open, of the one before its results, or of what comes next.
    pub fn cost(&mut self, usage: Usage) {
        if let Some(open) = &mut self.open {
            open.usage = Some(sum(open.usage.take(), usage));
        } else if let Some(reply) = self.unpriced.take().and_then(|at| self.ready.get_mut(at)) {
            reply.usage = Some(usage);
        } else {
            self.early = Some(sum(self.early.take(), usage));
        }
    }

    /// Nothing follows.
    pub fn end(&mut self) {
        if !self.others.is_empty() {
            self.assistant();
        }
        self.close();
        self.unpriced = None;
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
                if role == Role::User && MARKS.iter().any(|mark| content.text.trim_start().starts_with(mark)) {
                    message.source = Some(by_program("codex"));
                }
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
        let message = self.open.take().unwrap_or_else(|| {
            self.unpriced = None;
            let usage = self.early.take();
            NewMessage { usage, ..self.new_message(Role::Assistant) }
        });
        self.open.insert(message)
    }

    fn close(&mut self) {
        let Some(mut message) = self.open.take() else { return };
        message.provider = provider("codex", &grouped(std::mem::take(&mut self.kept)));
        if message.usage.is_none() {
            self.unpriced = Some(self.ready.len());
        }
        self.ready.push(message);
    }
}

fn fill(message: &mut NewMessage, content: Content) {
    message.content = content.text;
    message.attachments = content.attachments;
}
