//! The operation `notes.rm`.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::Catalog;
use chorus_clock::Clock;
use chorus_proto::ErrorKind;
use chorus_proto::methods::memory;
use chorus_proto::methods::notes::{RmParams, RmResult};
use chorus_session::notes::{NoteEdit, NoteRef};

use super::{may_be_memory, memory_to_note, to_edited_note};
use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::conversations::ConversationTarget;
use crate::ops::memory::remove as remove_memory;

/// Removes a note of the live context, or moves an entry of the memory to the trash.
///
/// # Errors
/// `not_found`, `ambiguous`, `invalid_params`, `disk_full`, `storage_failed`.
pub async fn rm(
    agents: &AgentResolver,
    registry: &Arc<Registry>,
    catalog: &Catalog,
    clock: &Clock,
    params: RmParams,
) -> Result<RmResult> {
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let ConversationTarget { agent, key: conversation, .. } = target;
    let edit = NoteEdit::Remove { note: NoteRef::any(&params.note) };
    match registry.ask(conversation, command::edit_notes(edit)).await {
        Ok(edited) => Ok(RmResult { note: to_edited_note(&agent.settings, &edited), trash: None }),
        Err(failure) if may_be_memory(&failure, &params.note) => {
            let removal = memory::RemoveParams { agent: Some(agent.settings.name.clone()), id: params.note };
            match remove_memory::remove(agents, catalog, clock, removal).await {
                Ok(removed) => Ok(RmResult { note: memory_to_note(removed.entry), trash: Some(removed.trash) }),
                Err(unknown) if unknown.kind == ErrorKind::NotFound => Err(failure),
                Err(other) => Err::<_, Error>(other),
            }
        }
        Err(failure) => Err(failure),
    }
}
