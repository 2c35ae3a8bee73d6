//! The operation `notes.add`.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::new_id;
use chorus_catalog::Catalog;
use chorus_clock::Clock;
use chorus_proto::methods::memory;
use chorus_proto::methods::notes::{AddParams, AddResult, NoteKind, NoteScope, NoteView};
use chorus_proto::{Item, ItemSource};
use chorus_redact::Redactor;
use chorus_session::notes::{NoteChange, NoteEdit, NoteList};

use super::{memory_to_note, to_edited_note, validate_text};
use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::context::pin::pins_warning;
use crate::ops::conversations::ConversationTarget;
use crate::ops::memory::add as add_memory;

/// Adds a note. A fact of the scope `here` is pinned in the live context, one of another scope is an entry of the
/// memory.
///
/// # Errors
/// `invalid_params`, `agent_not_found`, `disk_full`, `storage_failed`, and those of `memory.add`.
pub async fn add(
    agents: &AgentResolver,
    registry: &Arc<Registry>,
    catalog: &Catalog,
    redactor: &Redactor,
    clock: &Clock,
    params: AddParams,
) -> Result<AddResult> {
    let AddParams { agent: name, conversation, kind, text, scope, path, redact } = params;
    let (kind, scope) = (kind.unwrap_or(NoteKind::Fact), scope.unwrap_or_default());
    if kind != NoteKind::Fact && scope != NoteScope::Here {
        return Err(Error::invalid("only facts can be known outside of this conversation")
            .hint("leave out the scope, or add it as a fact"));
    }
    if scope != NoteScope::Here {
        let project = scope == NoteScope::Project;
        let params = memory::AddParams { agent: name, text, path, project, redact };
        let memory::AddResult { entry, added, secrets_found } =
            add_memory::add(agents, catalog, redactor, clock, params).await?;
        let warnings = (!entry.shown).then(|| MEMORY_FULL.to_owned()).into_iter().collect();
        return Ok(AddResult { note: memory_to_note(entry), added, secrets_found, warnings });
    }
    if path.is_some() {
        return Err(Error::invalid("only a fact of the agent or its project can name a path")
            .hint("leave out the path, or add the scope agent"));
    }
    let list = match kind {
        NoteKind::Fact => NoteList::PinnedFacts,
        NoteKind::Decision => NoteList::Decisions,
        NoteKind::Task => NoteList::OpenTasks,
        NoteKind::File => NoteList::FilesTouched,
        NoteKind::Conflict => {
            return Err(Error::invalid("conflicts are found, not added").hint("add the decision that settles it"));
        }
    };
    let secrets_found = redactor.count_secrets(&text);
    let text = if redact { redactor.redact_text(&text).into_owned() } else { text };
    let text = validate_text("a note", &text)?;
    let target = agents.conversation_to_write(name.as_deref(), conversation.as_deref()).await?;
    let ConversationTarget { agent, key: conversation, .. } = target;
    let item = Item { id: new_id().to_string(), text, source: ItemSource::Hand, message_id: None };
    let edited = registry.ask(conversation, command::edit_notes(NoteEdit::Add { list, item })).await?;
    let added = edited.edit.changes.iter().any(|change| matches!(change, NoteChange::Add { .. }));
    let note = to_edited_note(&agent.settings, &edited);
    let mut warnings: Vec<String> = Vec::new();
    if list == NoteList::PinnedFacts {
        warnings.extend(pins_warning(&agent.settings, &edited.working_set));
    } else if note.shown != NoteView::Full {
        warnings.push("the window is too small to show all notes in full: chorusctl notes list".to_owned());
    }
    Ok(AddResult { note, added, secrets_found, warnings })
}

/// The warning that a memory entry is not shown.
const MEMORY_FULL: &str = "the memory budget is full, so the model does not see this entry: chorusctl memory list";
