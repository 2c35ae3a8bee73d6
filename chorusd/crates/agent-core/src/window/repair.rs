//! Repairs a list of messages so that every provider accepts it: no import, crash or edit makes a conversation
//! unusable.

use std::collections::HashSet;

use chorus_proto::{MendKind, Message, NewMessage, Role, ToolCall};

/// The content of the result that a call without one gets.
pub const INTERRUPTED_RESULT: &str = "interrupted, outcome unknown";

/// A difference between the window and the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Id of the message.
    pub id: String,
    pub kind: MendKind,
}

/// Repairs `messages`. Afterwards the first one is a user's, each is from the user, the assistant or a tool, none is
/// empty, the calls of one message have different ids, and each call has exactly one result, directly after the message
/// that made it. Idempotent.
#[must_use]
pub fn repair_messages(messages: Vec<Message>) -> (Vec<Message>, Vec<Repair>) {
    let mut mender = Repairer::default();
    let mut messages = messages.into_iter().peekable();
    while let Some(message) = messages.next() {
        match message.role {
            Role::User => mender.push_user(message),
            Role::System => mender.push_system(&message),
            Role::ToolResult => mender.push_stray_result(&message),
            Role::Assistant => {
                let mut results = Vec::new();
                while let Some(result) = messages.next_if(|next| next.role == Role::ToolResult) {
                    results.push(result);
                }
                mender.push_assistant(message, results);
            }
        }
    }
    (mender.messages, mender.repairs)
}

#[derive(Default)]
struct Repairer {
    messages: Vec<Message>,
    repairs: Vec<Repair>,
}

impl Repairer {
    fn record_repair(&mut self, id: &str, what: MendKind) {
        self.repairs.push(Repair { id: id.to_owned(), kind: what });
    }

    fn push_user(&mut self, mut message: Message) {
        if message.content.trim().is_empty() && message.attachments.is_empty() {
            self.record_repair(&message.id, MendKind::Empty);
            message.content = "(an empty message)".to_owned();
        }
        // A user's message makes no tool calls and answers none.
        message.tool_calls.clear();
        message.tool_call_id = None;
        self.messages.push(message);
    }

    fn push_system(&mut self, message: &Message) {
        self.record_repair(&message.id, MendKind::Quoted);
        self.messages.push(quoted_message(message, "A system message of this conversation, quoted:"));
    }

    fn push_stray_result(&mut self, message: &Message) {
        self.record_repair(&message.id, MendKind::Stray);
        let tool = message.name.as_deref().unwrap_or("a tool");
        self.messages.push(quoted_message(message, &format!("A result of {tool} without its call, quoted:")));
    }

    fn push_assistant(&mut self, mut message: Message, results: Vec<Message>) {
        if message.tool_calls.is_empty() && message.content.trim().is_empty() {
            self.record_repair(&message.id, MendKind::Empty);
            results.iter().for_each(|result| self.push_stray_result(result));
            return;
        }
        if self.messages.is_empty() {
            self.record_repair(&message.id, MendKind::Opened);
            let opening =
                Message { attachments: Vec::new(), ..generated_message(&message, "(The conversation starts here.)") };
            self.messages.push(opening);
        }
        message.tool_call_id = None;
        let id = message.id.clone();
        let asked: Vec<String> = message.tool_calls.iter().map(|call| call.id.clone()).collect();
        if ensure_unique_ids(&mut message.tool_calls) {
            self.record_repair(&id, MendKind::Renamed);
        }
        let given: Vec<(String, String)> =
            message.tool_calls.iter().map(|call| (call.id.clone(), call.name.clone())).collect();
        self.messages.push(message.clone());

        let mut open: Vec<usize> = (0..given.len()).collect();
        let mut stray = Vec::new();
        for mut result in results {
            let answers = |at: &&usize| result.tool_call_id.as_deref() == Some(&*asked[**at]);
            let Some(at) = open.iter().find(answers).copied() else {
                stray.push(result);
                continue;
            };
            open.retain(|other| *other != at);
            result.tool_call_id = Some(given[at].0.clone());
            result.tool_calls.clear();
            self.messages.push(result);
        }
        if !open.is_empty() {
            self.record_repair(&id, MendKind::Answered);
        }
        for at in open {
            let (call, name) = given[at].clone();
            self.messages.push(Message {
                role: Role::ToolResult,
                tool_call_id: Some(call),
                is_error: true,
                name: Some(name),
                ..generated_message(&message, INTERRUPTED_RESULT)
            });
        }
        stray.iter().for_each(|result| self.push_stray_result(result));
    }
}

/// Gives each call a unique id, and a name. Returns whether any had to be changed.
fn ensure_unique_ids(calls: &mut [ToolCall]) -> bool {
    let mut changed = false;
    let mut taken: HashSet<String> = calls.iter().map(|call| call.id.clone()).collect();
    let mut seen = HashSet::new();
    for call in calls {
        if call.id.is_empty() || !seen.insert(call.id.clone()) {
            let base = if call.id.is_empty() { "call" } else { &call.id };
            let free = (2_u32..).map(|n| format!("{base}-{n}")).find(|id| !taken.contains(id)).unwrap_or_default();
            taken.insert(free.clone());
            seen.insert(free.clone());
            call.id = free;
            changed = true;
        }
        if call.name.is_empty() {
            call.name = "unknown".to_owned();
            changed = true;
        }
    }
    changed
}

/// Creates a user message with `text` and with the id and time of `of`.
fn generated_message(of: &Message, text: &str) -> Message {
    let said = NewMessage::text(Role::User, text).complete(|| of.id.clone(), of.timestamp);
    Message { attachments: of.attachments.clone(), generated: true, ..said }
}

fn quoted_message(message: &Message, lead: &str) -> Message {
    let lines = message.content.lines().map(|line| format!("\n> {line}"));
    generated_message(message, &std::iter::once(lead.to_owned()).chain(lines).collect::<String>())
}
