//! Imports the export of claude.ai (conversations.json): a list of conversations, each a list of messages that form a tree
//! since 2025. A single conversation in the same form is taken, too.

mod message;

use std::io::{self, BufRead, Seek};

use super::chat_path::write_path;
use super::error::ImportError;
use super::json_values::parse_timestamp;
use super::message_tree::TreeNode;
use super::object_list::for_each_object;
use super::raw_object::{RawObject, list_entries};
use super::sink::ImportedMetadata;
use super::writer::SessionWriter;

const PROGRAM: &str = "claude-ai";

/// Returns whether an object is a conversation of an export.
pub(super) fn is_conversation(fields: &RawObject<'_>) -> bool {
    fields.get("chat_messages").is_some_and(|messages| messages.get().starts_with('['))
}

/// Imports all conversations.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    for_each_object(source, writer, import_conversation)
}

fn import_conversation(number: u64, fields: &RawObject<'_>, writer: &mut SessionWriter<'_>) -> io::Result<()> {
    let Some(messages) = fields.get("chat_messages").and_then(list_entries) else {
        writer.skip(number, "not a conversation: it has no chat_messages");
        return Ok(());
    };
    let about = ImportedMetadata {
        id: fields.get_text("uuid").and_then(|id| id.parse().ok()),
        conversation: fields.get_filled("uuid"),
        description: fields.get_filled("name"),
        started_at: fields.get("created_at").and_then(parse_timestamp),
        saved_at: fields.get("updated_at").and_then(parse_timestamp),
        // Only what a program other than the export saved has these two.
        model: fields.get_filled("model"),
        ..ImportedMetadata::default()
    };
    let current = fields.get_filled("current_leaf_message_uuid");
    // In older exports the order of the list is the conversation.
    let is_tree =
        messages.iter().any(|raw| RawObject::from_value(raw).is_some_and(|one| one.has("parent_message_uuid")));
    let mut nodes: Vec<TreeNode<'_, _>> = Vec::with_capacity(messages.len());
    for (at, raw) in messages.into_iter().enumerate() {
        let message = RawObject::from_value(raw);
        let field = |name: &str| message.as_ref().and_then(|message| message.get_text(name));
        let parent = if is_tree { field("parent_message_uuid") } else { nodes.last().map(|node| node.id.clone()) };
        nodes.push(TreeNode {
            id: field("uuid").unwrap_or_else(|| format!("message {at}").into()),
            parent,
            at: message.as_ref().and_then(|message| message.get("created_at")).and_then(parse_timestamp),
            is_message: true,
            value: raw,
        });
    }
    write_path((number, PROGRAM), &nodes, current.as_deref(), about, writer, |fields, _| message::parse(fields))
}

#[cfg(test)]
mod tests;
