//! One entry of a list, or one line: where its message is.

use super::super::fields::Fields;

/// Lines that programs write between messages, and that say nothing of the conversation.
const NOTES: [&str; 3] = ["session_end", "todo_state", "turn_ended"];

/// What an entry is.
#[derive(Debug)]
pub(super) enum Entry<'a> {
    /// A message, with the fields that stood around it.
    Message(Fields<'a>),
    /// What the program says of the session.
    Start(Fields<'a>),
    /// Known, and no part of a conversation.
    Note,
}

impl<'a> Entry<'a> {
    /// Reads an entry. Cursor and droid have the message of the API below `message`.
    pub fn read(fields: Fields<'a>) -> Self {
        if let Some(message) = wrapped(&fields) {
            return Self::Message(message);
        }
        let kind = fields.text("type");
        let role = fields.text("role");
        match (kind.as_deref(), role.as_deref()) {
            (Some("session_start"), None) | (_, Some("session_meta")) => Self::Start(fields),
            (Some(kind), None) if NOTES.contains(&kind) => Self::Note,
            _ => Self::Message(fields),
        }
    }
}

/// Whether an object is an entry of a list of messages, or has such a list.
pub(in super::super) fn is_entry(fields: &Fields<'_>) -> bool {
    fields.has("role") || fields.has("messages") || wrapped(fields).is_some()
}

fn wrapped<'a>(fields: &Fields<'a>) -> Option<Fields<'a>> {
    if fields.names("content") {
        return None;
    }
    fields.opened("message").filter(|inside| inside.has("role") && inside.names("content"))
}
