//! Changes the text of a memory, for `notes.edit`.

use chorus_base::error::{Error, Result};
use chorus_catalog::{Catalog, memories};
use chorus_clock::Clock;
use chorus_proto::ErrorKind;
use chorus_proto::methods::memory::MemoryEntry;

use super::{audit_row_of_change, find_one, load_memory, to_entries};
use crate::agent::agent_index::AgentEntry;
use crate::ops::agent::AgentResolver;

/// Changes the text of the memory whose id begins with `id`. It counts as written by a person from then on.
///
/// # Errors
/// `not_found`, `ambiguous`, `invalid_params`, `already_exists` if another one says the same, `disk_full`,
/// `storage_failed`.
pub async fn edit(
    agents: &AgentResolver,
    catalog: &Catalog,
    clock: &Clock,
    agent: &AgentEntry,
    id: &str,
    text: &str,
) -> Result<MemoryEntry> {
    let unfit = |why| Error::invalid(why).hint("shorten it to one or two sentences; or put it in a file in docs/");
    let text = memories::validate_text(text).map_err(unfit)?;
    // Serialises changes, so that each is recorded with what it replaced.
    let _one_at_a_time = agents.lock.lock().await;
    let memory = load_memory(&catalog.memories, agent).await?;
    let row = find_one(agent, &memory.rows, id)?.clone();
    let same = |other: &&chorus_catalog::MemoryRow| {
        other.id != row.id && other.text == text && other.path == row.path && other.project == row.project
    };
    if let Some(other) = memory.rows.iter().find(same) {
        let prefix: String = other.id.to_string().chars().take(8).collect();
        return Err(Error::new(ErrorKind::AlreadyExists, format!("memory entry {prefix} says the same"))
            .hint(format!("remove one of them: chorusctl memory remove {prefix}")));
    }
    catalog.audit.append(audit_row_of_change(agent, "edit", (Some(&row.text), Some(&text)), clock.now())).await?;
    catalog.memories.update_text(row.id, text).await?;
    let memory = load_memory(&catalog.memories, agent).await?;
    let changed = memory.rows.iter().find(|known| known.id == row.id).cloned();
    let entry = to_entries(&catalog.sessions, agent, &memory, changed.into_iter().collect()).await?.pop();
    entry.ok_or_else(|| Error::internal("an entry cannot be shown"))
}
