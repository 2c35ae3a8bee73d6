//! The operation `context.restore`.

use std::sync::Arc;

use chorus_agent_core::event::RestoredContext;
use chorus_base::error::Result;
use chorus_base::requester::Requester;
use chorus_clock::Clock;
use chorus_proto::methods::context::{RestoreParams, RestoreResult};
use futures_util::future::BoxFuture;
use tokio::sync::RwLock;

use super::session_prefix::SessionPrefix;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::session::SessionReader;
use crate::ops::workspace_restore::CheckpointFiles;

/// Restores a session's messages as the live context. Unsaved messages of the live context are saved first unless
/// `discard` is set. With `files` the workspace is restored to the session's checkpoint as well.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `denied`, `corrupt_session`, `disk_full`, `storage_failed`. With `files` also
/// `git_failed`, and `denied` if changes in the workspace would be lost; nothing was done then.
pub async fn restore(
    agents: &AgentResolver,
    sessions: &SessionReader,
    lock: &RwLock<()>,
    registry: &Arc<Registry>,
    clock: &Clock,
    params: RestoreParams,
) -> Result<RestoreResult> {
    restore_as(agents, sessions, lock, registry, clock, params, &Requester::Owner).await
}

/// Like [`restore`], on behalf of `by`.
pub fn restore_as<'a>(
    agents: &'a AgentResolver,
    sessions: &'a SessionReader,
    lock: &'a RwLock<()>,
    registry: &'a Arc<Registry>,
    clock: &'a Clock,
    params: RestoreParams,
    by: &'a Requester,
) -> BoxFuture<'a, Result<RestoreResult>> {
    Box::pin(async move {
        let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
        let new = params.as_conversation.as_deref();
        agents.check_destination(&target.agent, new)?;
        let _no_deletes = lock.read().await;
        let said = params.agent.is_some() && !params.own;
        let row = sessions.resolve_as(by, &target, said, &params.session, "restore NAME").await?;
        let (mut taken, check) = SessionPrefix::read(sessions, &row, params.at).await?;
        let mut warnings = std::mem::take(&mut taken.warnings);
        if !said && *by == Requester::Owner {
            warnings.extend(sessions.same_name_warning(&row, &params.session).await?);
        }
        let files = match params.files {
            true => Some(CheckpointFiles::prepare(registry, &target.agent.settings, target.key, &row.header).await?),
            false => None,
        };
        let restore = taken.into_command(&row, params.discard);
        let target = agents.destination(target, new).await?;
        // What the answer says of the session is looked up meanwhile.
        let (restored, session) = tokio::join!(registry.ask(target.key, restore), sessions.describe(row.clone()));
        let RestoredContext { messages, saved_first } = restored?;
        // Not awaited: only retention uses the time of last use.
        drop(sessions.table.touch(row.header.id, clock.now()));
        let mut files_commit = None;
        if let Some(files) = files {
            match files.restore().await {
                Ok(commit) => files_commit = Some(commit),
                // Not an error: the conversation is restored, and the files can be restored by a second attempt.
                Err(failure) => {
                    warnings.push(format!("the conversation was restored, but its files were not: {}", failure.message))
                }
            }
        }
        if let Some(warning) = check.warning(&row).await {
            warnings.insert(0, warning);
        }
        Ok(RestoreResult {
            session: session?,
            messages,
            saved_first: saved_first.map(|session| *session),
            files_commit,
            warnings,
        })
    })
}
