//! The operation `session.delete`.

use chorus_base::error::Result;
use chorus_proto::methods::session::{DeleteParams, DeleteResult};

use super::SessionTrash;
use crate::ops::agent::AgentResolver;

/// Moves a session to the trash.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `denied`, `disk_full`, `storage_failed`; the session is unchanged then.
pub async fn delete(agents: &AgentResolver, trash: &SessionTrash, params: DeleteParams) -> Result<DeleteResult> {
    let target = agents.conversation_for_sessions(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let said = params.agent.is_some() && !params.own;
    let row = trash.sessions.resolve(&target, said, &params.session, "rm NAME").await?;
    trash.fetch_file(&row).await?;
    let _no_restores = trash.sessions_lock.write().await;
    let _no_changes = trash.store.files.change_lock.lock().await;
    let row = trash.reload_row(row).await?;
    let session = trash.sessions.describe(row.clone()).await?;
    let id = row.header.id;
    trash.require_file(&row).await?;
    let trashed = trash.move_in(&row, || trash.store.catalog.sessions.delete(id)).await?;
    tracing::info!(agent = %row.header.agent_name, session = %row.header.session_id, "session deleted");
    Ok(DeleteResult { session, trash: trashed.map(|entry| entry.id) })
}
