//! Imports one conversation as one session.

use std::io;

use chorus_proto::{NewMessage, Role};
use serde_json::value::RawValue;

use super::super::json_values::{group_by_kind, import_source, minify_value, parse_timestamp, provider_object};
use super::super::message_tree::{PathNode, TreeNode, branches_reason, conversation_path};
use super::super::raw_object::RawObject;
use super::super::sink::ImportedMetadata;
use super::super::writer::SessionWriter;
use super::{is_conversation, message};

/// Imports the conversation with the given number.
pub(super) fn import_conversation(
    number: u64,
    fields: &RawObject<'_>,
    writer: &mut SessionWriter<'_>,
) -> io::Result<()> {
    if !is_conversation(fields) {
        writer.skip(number, "not a conversation: it has no mapping");
        return Ok(());
    }
    let Some(mapping) = fields.get("mapping").and_then(RawObject::from_value) else {
        writer.skip(number, "invalid mapping");
        return Ok(());
    };
    let id = fields.get_text("conversation_id").or_else(|| fields.get_text("id"));
    let about = ImportedMetadata {
        id: id.as_ref().and_then(|id| id.parse().ok()),
        conversation: id.filter(|id| !id.is_empty()).map(Into::into),
        description: fields.get_text("title").filter(|title| !title.trim().is_empty()).map(Into::into),
        started_at: fields.get("create_time").and_then(parse_timestamp),
        saved_at: fields.get("update_time").and_then(parse_timestamp),
        model: fields.get_text("default_model_slug").map(Into::into),
        ..ImportedMetadata::default()
    };
    let mut talk =
        ConversationReader { number, about, calls: Vec::new(), pending_fields: Vec::new(), branch_messages: 0 };
    let nodes: Vec<TreeNode<'_, _>> = mapping.iter().filter_map(|(id, raw)| parse_node(id, raw)).collect();
    for step in conversation_path(&nodes, fields.get_text("current_node").as_deref()) {
        talk.add_node(step, writer)?;
    }
    talk.finish(writer)
}

/// A node of the tree: all of it, and its message.
type Node<'a> = (&'a RawValue, Option<&'a RawValue>);

fn parse_node<'a>(id: &'a str, raw: &'a RawValue) -> Option<TreeNode<'a, Node<'a>>> {
    let fields = RawObject::from_value(raw)?;
    let message = fields.get("message");
    Some(TreeNode {
        id: id.into(),
        parent: fields.get_text("parent"),
        at: message
            .and_then(RawObject::from_value)
            .and_then(|message| message.get("create_time").and_then(parse_timestamp)),
        is_message: message.is_some(),
        value: (raw, message),
    })
}

/// State of a conversation that is being read.
struct ConversationReader {
    number: u64,
    about: ImportedMetadata,
    /// Ids and names of tool calls, the newest last.
    calls: Vec<(String, String)>,
    /// Values that are kept with the next message: thoughts, and nodes of other branches.
    pending_fields: Vec<(String, Box<RawValue>)>,
    branch_messages: u64,
}

impl ConversationReader {
    fn add_node(&mut self, step: PathNode<Node<'_>>, writer: &mut SessionWriter<'_>) -> io::Result<()> {
        let read = match step.value.1.map(message::parse).transpose() {
            Ok(read) => read,
            Err(reason) => {
                writer.skip(self.number, reason);
                None
            }
        };
        self.branch_messages += step.branches.len() as u64;
        let branches = step.branches.iter().map(|(raw, _)| ("branches".to_owned(), minify_value(raw)));
        let Some(read) = read else {
            self.pending_fields.extend(branches);
            return Ok(());
        };
        self.about.model = read.model.or(self.about.model.take());
        if read.silent {
            // An empty root, or thoughts: they belong to the next message.
            self.pending_fields.extend(read.others);
            self.pending_fields.extend(branches);
            return Ok(());
        }
        let mut message = read.message;
        let mut others = std::mem::take(&mut self.pending_fields);
        others.extend(read.others);
        others.extend(branches);
        message.provider = provider_object("chatgpt", &group_by_kind(others));
        self.write_message(message, writer)
    }

    fn write_message(&mut self, mut message: NewMessage, writer: &mut SessionWriter<'_>) -> io::Result<()> {
        self.calls.extend(message.tool_calls.iter().map(|call| (call.id.clone(), call.name.clone())));
        if message.role == Role::ToolResult {
            message.tool_call_id = self.answered_call(message.name.as_deref());
        }
        let at = message.timestamp.or(self.about.started_at).unwrap_or(writer.now);
        let message = message.complete(&mut *writer.new_id, at);
        writer.write_message(&message)
    }

    /// Returns the call that a result of this tool belongs to: `browser` answers `browser.search`.
    fn answered_call(&mut self, name: Option<&str>) -> Option<String> {
        let name = name?;
        let of = |called: &str| called == name || called.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        self.calls.iter().rfind(|(_, called)| of(called)).map(|(id, _)| id.clone())
    }

    fn finish(mut self, writer: &mut SessionWriter<'_>) -> io::Result<()> {
        let left = std::mem::take(&mut self.pending_fields);
        if !left.is_empty() {
            let mut message = NewMessage::text(Role::Assistant, "");
            message.source = Some(import_source("chatgpt"));
            message.provider = provider_object("chatgpt", &group_by_kind(left));
            self.write_message(message, writer)?;
        }
        if self.branch_messages > 0 {
            writer.leave_out(self.number, branches_reason(self.branch_messages));
        }
        writer.end_session(self.about)
    }
}
