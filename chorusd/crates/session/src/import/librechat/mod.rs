//! Imports conversations that LibreChat exported as JSON: one object with a list of messages, or with a tree of them.

mod message;

use std::borrow::Cow;
use std::io::{self, BufRead, Seek};

use serde_json::value::RawValue;

use super::chat_path::write_path;
use super::error::ImportError;
use super::json_values::parse_timestamp;
use super::message_tree::TreeNode;
use super::object_list::for_each_object;
use super::raw_object::{RawObject, list_entries};
use super::sink::ImportedMetadata;
use super::writer::SessionWriter;
use crate::file::derived_id;

const PROGRAM: &str = "librechat";

/// The title of a conversation that has none yet.
const NO_TITLE: &str = "New Chat";

/// Returns whether an object is an exported conversation.
pub(super) fn is_conversation(fields: &RawObject<'_>) -> bool {
    let is_list = |name: &str| fields.get(name).is_some_and(|list| list.get().starts_with('['));
    fields.has("conversationId") && (is_list("messages") || is_list("messagesTree"))
}

/// Imports all conversations.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    for_each_object(source, writer, import_conversation)
}

fn import_conversation(number: u64, fields: &RawObject<'_>, writer: &mut SessionWriter<'_>) -> io::Result<()> {
    if !is_conversation(fields) {
        writer.skip(number, "not a conversation: it has no conversationId or messages");
        return Ok(());
    }
    let listed = fields.get("messages").and_then(list_entries).unwrap_or_default();
    let mut messages: Vec<Cow<'_, RawValue>> = listed.into_iter().map(Cow::Borrowed).collect();
    add_tree(fields.get("messagesTree").and_then(list_entries).unwrap_or_default(), &mut messages);
    let nodes: Vec<_> = messages.iter().enumerate().map(|(at, raw)| node(at, raw)).collect();
    let options = fields.get("options").and_then(RawObject::from_value);
    let conversation = fields.get_filled("conversationId");
    let about = ImportedMetadata {
        id: conversation.as_deref().map(|id| id.parse().unwrap_or_else(|_| derived_id(&format!("{PROGRAM}/{id}")))),
        conversation,
        description: fields.get_filled("title").filter(|title| title != NO_TITLE),
        started_at: nodes.iter().filter_map(|node| node.at).min(),
        model: options.and_then(|options| options.get_filled("model")),
        ..ImportedMetadata::default()
    };
    write_path((number, PROGRAM), &nodes, None, about, writer, message::parse)
}

fn node(at: usize, raw: &RawValue) -> TreeNode<'_, &RawValue> {
    let message = RawObject::from_value(raw);
    let field = |name: &str| message.as_ref().and_then(|message| message.get_text(name));
    TreeNode {
        id: field("messageId").unwrap_or_else(|| format!("message {at}").into()),
        parent: field("parentMessageId"),
        at: message.as_ref().and_then(|message| message.get("createdAt")).and_then(parse_timestamp),
        is_message: true,
        value: raw,
    }
}

/// Adds the messages of a tree, each before its answers. They name their parents, so that `children` is left out of them.
fn add_tree<'a>(roots: Vec<&'a RawValue>, messages: &mut Vec<Cow<'a, RawValue>>) {
    let mut open = roots;
    open.reverse();
    while let Some(raw) = open.pop() {
        let Some(fields) = RawObject::from_value(raw) else {
            messages.push(Cow::Borrowed(raw));
            continue;
        };
        let children = fields.get("children").and_then(list_entries).unwrap_or_default();
        messages.extend(fields.without("children").to_raw_value().map(Cow::Owned));
        open.extend(children.into_iter().rev());
    }
}

#[cfg(test)]
mod tests;
