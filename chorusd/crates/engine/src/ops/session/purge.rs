//! The operation `session.purge`.

use std::path::Path;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_catalog::SessionRow;
use chorus_proto::ErrorKind;
use chorus_proto::methods::session::{LiveConversation, PurgeParams, PurgeResult};
use chorus_runtime::run_blocking;
use chorus_session::conversation::{ConversationKey, MAIN_CONVERSATION};
use chorus_store::trash::TrashItem;
use chorus_store::{Store, trash};
use uuid::Uuid;

use super::SessionTrash;
use crate::agent::agent_index::AgentIndex;
use crate::ops::agent::AgentResolver;
use crate::ops::trash as ops_trash;

/// How often erasing is attempted while the databases are read, for example copied.
const MAX_ERASE_ATTEMPTS: u32 = 5;

/// How often and in what intervals erasing is tried again after that; then the next start does it.
const MAX_ERASE_RETRIES: u32 = 10;
const ERASE_RETRY: Duration = Duration::from_secs(60);

/// How long a purge waits until its texts are overwritten. After that the result says `erasing`; the work continues.
pub(crate) const MAX_ERASURE_WAIT: Duration = Duration::from_secs(10);

/// Deletes a session permanently: its file, its row, its copies in the trash, and what the search index and the databases
/// still hold of it. Live contexts that were restored from it continue, and are named in the result.
pub async fn purge(agents: &AgentResolver, trash: &SessionTrash, params: PurgeParams) -> Result<PurgeResult> {
    let purged = delete(agents, trash, params).await?;
    let erasing = !erase(trash, purged.id).await;
    Ok(PurgeResult { erasing, ..purged })
}

/// Deletes everything but what the search index and the databases still hold.
async fn delete(agents: &AgentResolver, trash: &SessionTrash, params: PurgeParams) -> Result<PurgeResult> {
    let target = agents.conversation_for_sessions(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let row = trash
        .sessions
        .resolve(&target, params.agent.is_some() && !params.own, &params.session, "session purge NAME")
        .await;
    if let Ok(row) = &row {
        // Contexts that refer to it load it under the locks, where no file can be copied here.
        trash.fetch_file(row).await?;
    }
    let _no_restores = trash.sessions_lock.write().await;
    let _no_changes = trash.store.files.change_lock.lock().await;
    let result = match row {
        Ok(row) => {
            let row = trash.reload_row(row).await?;
            purge_row(trash, row).await?
        }
        Err(failure) if failure.kind == ErrorKind::SessionNotFound => {
            let (id, session_id) =
                find_in_trash(&trash.home, target.key.agent, &params.session).await?.ok_or(failure)?;
            // The row is gone already, but its database pages may still hold its content.
            trash.store.catalog.sessions.purge(id).await?;
            PurgeResult { id, session_id, live: Vec::new(), live_in: Vec::new(), erasing: false }
        }
        Err(failure) => return Err(failure),
    };
    erase_copies(trash, result.id, target.key.agent).await?;
    Ok(result)
}

/// Moves a session out of its place, and deletes its row. Under the locks.
pub(super) async fn purge_row(trash: &SessionTrash, row: SessionRow) -> Result<PurgeResult> {
    let id = row.header.id;
    let live_in = find_live(trash, id);
    let mut live: Vec<String> = live_in.iter().map(|one| one.agent.clone()).collect();
    live.dedup();
    trash.move_in(&row, || trash.store.catalog.sessions.purge(id)).await?;
    Ok(PurgeResult { id, session_id: row.header.session_id, live, live_in, erasing: false })
}

/// Returns the live conversations that contain messages of a session.
pub(super) fn find_live(trash: &SessionTrash, session: Uuid) -> Vec<LiveConversation> {
    let keys = trash.registry.conversations_referring_to(|of| of == session).into_iter();
    let mut live_in: Vec<_> = keys.filter_map(|(key, _)| describe(&trash.agents, key)).collect();
    live_in.sort_by(|a, b| (&a.agent, &a.conversation).cmp(&(&b.agent, &b.conversation)));
    live_in
}

/// Deletes what is left of a session whose row is gone: its copies in the trash and its events. Under the locks;
/// [`erase`] comes after them.
pub(super) async fn erase_copies(trash: &SessionTrash, id: Uuid, agent: Uuid) -> Result<()> {
    delete_trash_copies(&trash.home, id).await?;
    trash.store.journal.delete_events_of(id).await?;
    // All stored replies of the agent, since it is not known which of them belong to the session.
    trash.store.journal.delete_turn_answers(agent).await?;
    tracing::info!(session = %id, "session purged");
    Ok(())
}

/// Overwrites what the search index and the databases hold of a deleted session. Returns false if that takes longer than a client should
/// wait, and continues in the background.
pub(super) async fn erase(trash: &SessionTrash, id: Uuid) -> bool {
    let store = trash.store.clone();
    let databases = chorus_runtime::spawn(async move {
        for _ in 0..MAX_ERASE_RETRIES {
            if erase_purged(&store).await {
                return true;
            }
            tokio::time::sleep(ERASE_RETRY).await;
        }
        false
    });
    let databases = tokio::time::timeout(MAX_ERASURE_WAIT, databases);
    let (index, databases) = tokio::join!(trash.search.erase(id, MAX_ERASURE_WAIT), databases);
    index && matches!(databases, Ok(Ok(true)))
}

/// Names a conversation and its agent; `None` if the agent is gone.
fn describe(agents: &AgentIndex, key: ConversationKey) -> Option<LiveConversation> {
    let agent = agents.by_id(key.agent)?.settings.name.clone();
    let main = || agents.conversations.has_any(key.agent).then(|| MAIN_CONVERSATION.to_owned());
    Some(LiveConversation { agent, conversation: agents.conversations.name(key).or_else(main) })
}

/// Finds the session with this id or name that the agent has in the trash.
pub(super) async fn find_in_trash(home: &Path, agent: Uuid, text: &str) -> Result<Option<(Uuid, String)>> {
    let meant = |entry: TrashItem| {
        let note = entry.metadata?;
        let id = note.session?.id;
        (note.agent_id == agent && (note.name == text || id.to_string() == text)).then_some((id, note.name))
    };
    Ok(ops_trash::list_entries(home).await?.into_iter().find_map(meant))
}

async fn delete_trash_copies(home: &Path, id: Uuid) -> Result<()> {
    let copies: Vec<_> =
        ops_trash::list_entries(home).await?.into_iter().filter(|entry| entry.is_session(id)).collect();
    run_blocking(move || {
        let removed = copies.iter().try_for_each(trash::delete_entry);
        removed.map_err(|e| {
            Error::io("cannot delete a copy in the trash", &e).hint("delete it too: chorusctl trash empty")
        })
    })
    .await
}

/// Erases purged data from the databases, and returns false if that failed. The next start repeats it then.
pub async fn erase_purged(store: &Store) -> bool {
    for attempt in 1..=MAX_ERASE_ATTEMPTS {
        match store.purge_deleted().await {
            Ok(()) => return true,
            // Each attempt waits for those who read the databases.
            Err(failure) if failure.kind == ErrorKind::Busy && attempt < MAX_ERASE_ATTEMPTS => {}
            Err(failure) => {
                tracing::warn!(%failure, "cannot erase purged data from the databases yet");
                return false;
            }
        }
    }
    false
}
