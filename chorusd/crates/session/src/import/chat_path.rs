//! Writes the conversation of a chat program, whose messages form a tree: one path through it is the session.

use std::io;

use chorus_proto::Role;
use serde_json::value::RawValue;

use super::json_values::minify_value;
use super::message_tree::{TreeNode, branches_reason, conversation_path};
use super::raw_object::RawObject;
use super::sink::ImportedMetadata;
use super::turn_entry::TurnEntry;
use super::writer::SessionWriter;

/// Writes the path to the message `current`, or to the newest one without answer, as a session. `parse` makes entries of a message. Messages of other
/// branches are kept in `provider` of the one before them, and reported; so are those that `parse` refuses.
pub(super) fn write_path(
    (number, program): (u64, &'static str),
    nodes: &[TreeNode<'_, &RawValue>],
    current: Option<&str>,
    mut about: ImportedMetadata,
    writer: &mut SessionWriter<'_>,
    mut parse: impl FnMut(&RawObject<'_>, &mut ImportedMetadata) -> Result<Vec<TurnEntry>, String>,
) -> io::Result<()> {
    let (mut pending, mut branch_messages) = (Vec::new(), 0);
    for step in conversation_path(nodes, current) {
        let parsed = RawObject::from_value(step.value).ok_or_else(|| "a message that is not an object".to_owned());
        let mut entries = match parsed.and_then(|fields| parse(&fields, &mut about)) {
            Ok(entries) => entries,
            Err(reason) => {
                writer.skip(number, reason);
                Vec::new()
            }
        };
        branch_messages += step.branches.len() as u64;
        let branches = step.branches.into_iter().map(|raw| ("branches".to_owned(), minify_value(raw)));
        let Some(last) = entries.last_mut() else {
            pending.extend(branches);
            continue;
        };
        last.extra.extend(branches);
        if let Some(first) = entries.first_mut() {
            first.extra.splice(0..0, pending.drain(..));
        }
        for mut entry in entries {
            entry.at = entry.at.or(about.started_at);
            entry.write(writer)?;
        }
    }
    if !pending.is_empty() {
        let mut rest = TurnEntry::new(program, Role::Assistant);
        rest.at = about.started_at;
        rest.extra = pending;
        rest.write(writer)?;
    }
    if branch_messages > 0 {
        writer.leave_out(number, branches_reason(branch_messages));
    }
    writer.end_session(about)
}
