//! The operation `notes.done`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_proto::methods::notes::{DoneParams, NoteResult};
use chorus_session::notes::{NoteEdit, NoteRef};

use super::to_edited_note;
use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::conversations::ConversationTarget;

/// Removes an open task that is done.
///
/// # Errors
/// `not_found`, `invalid_params` if it is another note, `disk_full`, `storage_failed`.
pub async fn done(agents: &AgentResolver, registry: &Arc<Registry>, params: DoneParams) -> Result<NoteResult> {
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let ConversationTarget { agent, key: conversation, .. } = target;
    let edit = NoteEdit::Done { note: NoteRef::task(&params.note) };
    let edited = registry.ask(conversation, command::edit_notes(edit)).await?;
    Ok(NoteResult { note: to_edited_note(&agent.settings, &edited), warnings: Vec::new() })
}
