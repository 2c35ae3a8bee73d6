//! Imports chats that Open WebUI exported: a list of them, or a single one. Each is a tree of messages; several models can
//! answer one question.

mod details;
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
use crate::file::derived_id;

const PROGRAM: &str = "open-webui";

/// The title of a chat that has none yet.
const NO_TITLE: &str = "New Chat";

/// Returns whether an object is an exported chat.
pub(super) fn is_conversation(fields: &RawObject<'_>) -> bool {
    let chat = fields.get("chat").and_then(RawObject::from_value);
    chat.is_some_and(|chat| chat.has("history") || chat.has("messages"))
}

/// Imports all chats.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    for_each_object(source, writer, import_conversation)
}

fn import_conversation(number: u64, fields: &RawObject<'_>, writer: &mut SessionWriter<'_>) -> io::Result<()> {
    let Some(chat) = fields.get("chat").and_then(RawObject::from_value) else {
        writer.skip(number, "not a chat: it has no object `chat`");
        return Ok(());
    };
    let history = chat.get("history").and_then(RawObject::from_value);
    let tree = history.as_ref().and_then(|history| history.get("messages")).and_then(RawObject::from_value);
    let mut nodes: Vec<TreeNode<'_, _>> = Vec::new();
    for (id, raw) in tree.iter().flat_map(RawObject::iter) {
        let message = RawObject::from_value(raw);
        let parent = message.as_ref().and_then(|message| message.get_text("parentId"));
        let at = message.as_ref().and_then(|message| message.get("timestamp")).and_then(parse_timestamp);
        nodes.push(TreeNode { id: id.into(), parent, at, is_message: true, value: raw });
    }
    if nodes.is_empty() {
        // Chats of 2023 have only the list.
        for (at, raw) in chat.get("messages").and_then(list_entries).unwrap_or_default().into_iter().enumerate() {
            let parent = nodes.last().map(|node| node.id.clone());
            nodes.push(TreeNode { id: format!("message {at}").into(), parent, at: None, is_message: true, value: raw });
        }
    }
    let times = [fields.get("created_at"), fields.get("timestamp"), chat.get("timestamp")];
    let conversation = fields.get_filled("id").or_else(|| chat.get_filled("id"));
    let models: Vec<String> = chat.get_parsed("models").unwrap_or_default();
    let about = ImportedMetadata {
        id: conversation.as_deref().map(|id| id.parse().unwrap_or_else(|_| derived_id(&format!("{PROGRAM}/{id}")))),
        conversation,
        description: fields.get_filled("title").or_else(|| chat.get_filled("title")).filter(|title| title != NO_TITLE),
        started_at: times.into_iter().flatten().find_map(parse_timestamp),
        model: models.into_iter().next(),
        ..ImportedMetadata::default()
    };
    let current = history.and_then(|history| history.get_filled("currentId"));
    write_path((number, PROGRAM), &nodes, current.as_deref(), about, writer, message::parse)
}

#[cfg(test)]
mod tests;
