//! The operation `memory.remove`.

use std::path::PathBuf;

use chorus_base::error::{Error, Result};
use chorus_catalog::Catalog;
use chorus_clock::Clock;
use chorus_proto::methods::memory::{RemoveParams, RemoveResult};
use chorus_proto::methods::trash::TrashKind;
use chorus_runtime::run_blocking;
use chorus_store::trash;
use chorus_store::trash::EntryMetadata;

use super::{abbreviate, audit_row_of_change, find_one, load_memory, to_entries};
use crate::ops::agent::AgentResolver;
use crate::ops::trash as ops_trash;

/// Moves a memory to the trash.
///
/// # Errors
/// `agent_not_found`, `not_found`, `ambiguous`, `disk_full`, `storage_failed`; the memory is unchanged then.
pub async fn remove(
    agents: &AgentResolver,
    catalog: &Catalog,
    clock: &Clock,
    params: RemoveParams,
) -> Result<RemoveResult> {
    let agent = agents.resolve(params.agent.as_deref()).await?;
    // Serialises removals and restores from the trash.
    let _one_at_a_time = agents.lock.lock().await;
    let memory = load_memory(&catalog.memories, &agent).await?;
    let row = find_one(&agent, &memory.rows, &params.id)?.clone();
    let entry = to_entries(&catalog.sessions, &agent, &memory, vec![row.clone()]).await?.pop();
    let entry = entry.ok_or_else(|| Error::internal("an entry cannot be shown"))?;
    let note = EntryMetadata {
        kind: TrashKind::Memory,
        agent_id: row.agent,
        name: abbreviate(&row.text),
        deleted_at: clock.now(),
        from: PathBuf::new(),
        session: None,
        memory: Some(row.clone()),
    };
    let home = agents.home.clone();
    let trashed = run_blocking(move || {
        trash::create_without_content(&home, &note).map_err(|e| Error::io("cannot write to the trash", &e))
    });
    let trashed = trashed.await?;
    let trash = trashed.id.clone();
    // The copy in the trash exists by now, so the removal can go ahead, and the audit log records nothing that does not
    // happen.
    let removed = async {
        catalog.audit.append(audit_row_of_change(&agent, "remove", (Some(&row.text), None), clock.now())).await?;
        catalog.memories.delete(vec![row.id]).await
    };
    if let Err(failure) = removed.await {
        let undone = run_blocking(move || {
            trash::remove_if_empty(&trashed);
            Ok(())
        });
        let _ = undone.await;
        return Err(failure);
    }
    ops_trash::make_visible(trashed).await;
    Ok(RemoveResult { entry, trash })
}
