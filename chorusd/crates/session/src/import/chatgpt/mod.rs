//! Imports ChatGPT's export: a list of conversations, each a tree of messages. One path through the tree is the
//! conversation.
//!
//! Messages of other branches (regenerated or edited) are kept in `provider` of the message that they follow, and
//! reported.

mod content;
mod conversation;
mod message;

use std::io::{BufRead, Seek};

use super::error::ImportError;
use super::object_list::for_each_object;
use super::raw_object::RawObject;
use super::writer::SessionWriter;

/// Returns whether an object is a conversation of an export.
pub(super) fn is_conversation(fields: &RawObject<'_>) -> bool {
    fields.get("mapping").is_some_and(|mapping| mapping.get().starts_with('{')) && !fields.has("role")
}

/// Imports every conversation of the file: a list of them, a single one, or one on each line.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    for_each_object(source, writer, conversation::import_conversation)
}

#[cfg(test)]
mod tests;
