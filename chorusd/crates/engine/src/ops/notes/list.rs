//! The operation `notes.list`.

use std::sync::Arc;

use chorus_agent_core::context::{PageBudget, PageRange};
use chorus_base::error::Result;
use chorus_catalog::{Catalog, MemoryRow};
use chorus_config::Config;
use chorus_proto::WorkingSet;
use chorus_proto::methods::notes::{ListParams, ListResult, Note, NoteKind, NoteScope};
use chorus_session::conversation::ConversationKey;
use chorus_session::notes::NoteList;

use super::{ShownNotes, memory_to_note, to_note};
use crate::agent::agent_index::AgentEntry;
use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::conversations::ConversationTarget;
use crate::ops::memory::{AgentMemory, load_memory, to_entries};

/// Lists what is known in the live context, and the facts that the agent and its project know in every one.
///
/// # Errors
/// `agent_not_found`; `corrupt_session` if the context cannot be read back.
pub async fn list(
    agents: &AgentResolver,
    registry: &Arc<Registry>,
    catalog: &Catalog,
    config: &Config,
    params: ListParams,
) -> Result<ListResult> {
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let ConversationTarget { agent, key: conversation, .. } = target;
    let set = read_working_set(registry, conversation).await?;
    let of_kind = |kind: NoteKind| params.kind.is_none_or(|wanted| wanted == kind);
    let of_scope = |scope: NoteScope| params.scope.is_none_or(|wanted| wanted == scope);
    let mut live = if of_scope(NoteScope::Here) { live_notes(&agent, &set) } else { Vec::new() };
    live.retain(|note| of_kind(note.kind));
    let memory = match of_kind(NoteKind::Fact) && params.scope != Some(NoteScope::Here) {
        true => Some(load_memory(&catalog.memories, &agent).await?),
        false => None,
    };
    let scope = |row: &MemoryRow| if row.project.is_some() { NoteScope::Project } else { NoteScope::Agent };
    let rows: Vec<MemoryRow> =
        memory.iter().flat_map(|memory| &memory.rows).filter(|row| of_scope(scope(row))).cloned().collect();
    let total = live.len() + rows.len();
    let start = usize::try_from(params.offset.unwrap_or(0)).unwrap_or(usize::MAX).min(total);
    let limit = usize::try_from(params.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let texts = live.iter().map(|note| note.text.len()).chain(rows.iter().map(|row| row.text.len()));
    let end = start + page_length(texts.skip(start).take(limit), config.max_frame);
    let mut notes: Vec<Note> = live.drain(start.min(live.len())..end.min(live.len())).collect();
    let before = total - rows.len();
    if let Some(memory) = memory.filter(|_| end > before) {
        let page = rows[start.saturating_sub(before)..end - before].to_vec();
        notes.extend(to_notes(catalog, &agent, &memory, page).await?);
    }
    Ok(ListResult {
        agent_name: agent.settings.name.clone(),
        background: set.background,
        summary: set.summary,
        notes,
        total: total as u64,
        next: (end < total && limit > 0).then_some(end as u64),
    })
}

async fn to_notes(
    catalog: &Catalog,
    agent: &AgentEntry,
    memory: &AgentMemory,
    page: Vec<MemoryRow>,
) -> Result<Vec<Note>> {
    let entries = to_entries(&catalog.sessions, agent, memory, page).await?;
    Ok(entries.into_iter().map(memory_to_note).collect())
}

/// Returns how many notes of these lengths fit into a page, but at least one.
fn page_length(texts: impl Iterator<Item = usize>, max_frame: usize) -> usize {
    /// Bytes of a note besides its text, at most; escapes may double the text.
    const FRAME_BYTES: usize = 700;
    let mut left = PageBudget::from_max_frame(max_frame).page_bytes;
    let mut first = true;
    texts
        .take_while(|length| {
            let fits = left.checked_sub(length * 2 + FRAME_BYTES);
            left = fits.unwrap_or(0);
            std::mem::take(&mut first) || fits.is_some()
        })
        .count()
}

/// Returns the working set of an agent's live context; an empty one if there is none.
async fn read_working_set(registry: &Arc<Registry>, conversation: ConversationKey) -> Result<WorkingSet> {
    if !registry.may_have_context(conversation) {
        return Ok(WorkingSet::default());
    }
    let room = PageBudget { page_bytes: 0, message_bytes: 0 };
    let page = registry.ask(conversation, command::read_page(PageRange::Last(0), room)).await?;
    Ok(*page.working_set)
}

fn live_notes(agent: &AgentEntry, set: &WorkingSet) -> Vec<Note> {
    let shown = ShownNotes::new(&agent.settings, set);
    let notes = |list: NoteList| {
        let number = move |index| list.number(set, index);
        let items = list.items(set).iter().enumerate();
        items
            .map(|(index, item)| to_note(list, item.clone(), number(index), shown.view(list, item)))
            .collect::<Vec<_>>()
    };
    NoteList::ALL.into_iter().flat_map(notes).collect()
}
