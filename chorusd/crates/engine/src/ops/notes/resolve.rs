//! The operation `notes.resolve`.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::new_id;
use chorus_proto::methods::notes::{NoteView, ResolveParams, ResolveResult};
use chorus_session::notes::{NoteEdit, NoteRef};

use super::{to_edited_note, to_note};
use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::conversations::ConversationTarget;

/// Settles a conflict: the statement of one side stays, notes that say what the other side says are removed, and a
/// decision says which holds.
///
/// # Errors
/// `not_found`, `invalid_params` without a side, or if it is no conflict with two sides; `disk_full`, `storage_failed`.
pub async fn resolve(agents: &AgentResolver, registry: &Arc<Registry>, params: ResolveParams) -> Result<ResolveResult> {
    let keep = params.keep.ok_or_else(|| {
        Error::invalid("which side holds?").hint("name it with `keep`: a is the first statement, b the second")
    })?;
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let ConversationTarget { agent, key: conversation, .. } = target;
    let edit = NoteEdit::Resolve { note: NoteRef::conflict(&params.note), keep, id: new_id().to_string() };
    let edited = registry.ask(conversation, command::edit_notes(edit)).await?;
    let note = to_edited_note(&agent.settings, &edited);
    let (kept, removed) = edited.edit.resolution.unwrap_or_default();
    let gone = |(list, item)| to_note(list, item, String::new(), NoteView::LeftOut);
    Ok(ResolveResult { note, kept, removed: removed.into_iter().map(gone).collect() })
}
