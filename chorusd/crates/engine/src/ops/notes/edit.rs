//! The operation `notes.edit`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::Catalog;
use chorus_clock::Clock;
use chorus_proto::ErrorKind;
use chorus_proto::methods::notes::{EditParams, NoteResult};
use chorus_session::notes::{NoteEdit, NoteList, NoteRef};

use super::{may_be_memory, memory_to_note, to_edited_note, validate_text};
use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::context::pin::pins_warning;
use crate::ops::conversations::ConversationTarget;
use crate::ops::memory::edit as edit_memory;

/// Changes the text of a note of the live context, or of an entry of the memory.
///
/// # Errors
/// `not_found`, `ambiguous`, `invalid_params`, `already_exists` if another entry of the memory says the same,
/// `disk_full`, `storage_failed`.
pub async fn edit(
    agents: &AgentResolver,
    registry: &Arc<Registry>,
    catalog: &Catalog,
    clock: &Clock,
    params: EditParams,
) -> Result<NoteResult> {
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let ConversationTarget { agent, key: conversation, .. } = target;
    let text = validate_text("a note", &params.text)?;
    let edit = NoteEdit::Edit { note: NoteRef::any(&params.note), text: text.clone() };
    match registry.ask(conversation, command::edit_notes(edit)).await {
        Ok(edited) => {
            let is_pin = edited.edit.list == NoteList::PinnedFacts;
            let warnings = pins_warning(&agent.settings, &edited.working_set).filter(|_| is_pin).into_iter().collect();
            Ok(NoteResult { note: to_edited_note(&agent.settings, &edited), warnings })
        }
        Err(failure) if may_be_memory(&failure, &params.note) => {
            match edit_memory::edit(agents, catalog, clock, &agent, &params.note, &text).await {
                Ok(entry) => Ok(NoteResult { note: memory_to_note(entry), warnings: Vec::new() }),
                Err(unknown) if unknown.kind == ErrorKind::NotFound => Err(failure),
                Err(other) => Err(other),
            }
        }
        Err(failure) => Err(failure),
    }
}
