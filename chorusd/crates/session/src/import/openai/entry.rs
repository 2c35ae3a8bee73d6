//! Finds the message in an entry of a list, or in a line.

use super::super::raw_object::RawObject;

/// Types of lines that programs write between messages and that are not part of the conversation.
const IGNORED_TYPES: [&str; 2] = ["session_end", "todo_state"];

/// The kind of an entry.
#[derive(Debug)]
pub(super) enum EntryKind<'a> {
    /// A message, together with the fields around it.
    Message(RawObject<'a>),
    /// The program's description of the session.
    SessionStart(RawObject<'a>),
    /// A known entry that is not part of the conversation.
    Ignored,
}

impl<'a> EntryKind<'a> {
    /// Classifies an entry. droid has the message of the API in the field `message`.
    pub(super) fn classify(fields: RawObject<'a>) -> Self {
        if let Some(message) = unwrap_message(&fields) {
            return Self::Message(message);
        }
        let kind = fields.get_text("type");
        let role = fields.get_text("role");
        match (kind.as_deref(), role.as_deref()) {
            (Some("session_start"), None) | (_, Some("session_meta")) => Self::SessionStart(fields),
            (Some(kind), None) if IGNORED_TYPES.contains(&kind) => Self::Ignored,
            _ => Self::Message(fields),
        }
    }
}

/// Returns whether an object is an entry of a list of messages, or has such a list.
pub(in super::super) fn is_entry(fields: &RawObject<'_>) -> bool {
    fields.has("role") || fields.has("messages") || unwrap_message(fields).is_some()
}

fn unwrap_message<'a>(fields: &RawObject<'a>) -> Option<RawObject<'a>> {
    if fields.contains_key("content") {
        return None;
    }
    fields.with_nested("message").filter(|inside| inside.has("role") && inside.contains_key("content"))
}
