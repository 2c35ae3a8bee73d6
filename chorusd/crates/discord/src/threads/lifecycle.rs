//! Closes the conversation of a thread that is archived or deleted, and brings it back when the thread is opened.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::Backoff;
use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::context::restore;
use chorus_engine::ops::conversations::ConversationKey;
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_proto::ErrorKind;
use chorus_proto::methods::context::RestoreParams;
use serenity::model::id::ChannelId;
use tokio::time::sleep;

use crate::app::DiscordApp;
use crate::conversations::of_thread;

/// Waits between tries to close a conversation in which a turn runs.
const CLOSE_BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));

/// Closes the conversations of a thread, once their messages are answered and their turns have ended, as long as the thread
/// is archived or deleted. Posts nothing, because that would unarchive the thread.
pub(super) async fn close(app: Arc<DiscordApp>, thread: ChannelId) {
    let mut backoff = CLOSE_BACKOFF;
    loop {
        match try_close(&app, thread).await {
            Ok(()) => return,
            Err(failure) if failure.kind == ErrorKind::Busy => {}
            Err(failure) => tracing::warn!(%thread, %failure, "cannot close the conversation of a thread; retrying"),
        }
        tokio::select! {
            () = sleep(backoff.next_wait()) => {}
            () = app.stop.cancelled() => return,
        }
    }
}

async fn try_close(app: &DiscordApp, thread: ChannelId) -> Result<()> {
    // The channel may have belonged to another agent before.
    for agent in app.ops.agents.all() {
        let Some(row) = of_thread(&app.ops, agent.settings.id, thread) else { continue };
        let _one_at_a_time = app.channels.thread_locks.lock(row.key.id).await;
        if app.channels.threads.get(thread).is_some_and(|thread| thread.archived != Some(true)) {
            return Ok(());
        }
        // Its turn may be about to start, after it opened the conversation.
        if app.inbound.has_claims(row.key) {
            return Err(Error::new(ErrorKind::Busy, "a message of the thread waits for its answer"));
        }
        app.ops.agent_resolver.close_conversation(row.key).await?;
        // If its git worktree has to stay for another reason, the log says why.
        let removal = app.ops.agent_resolver.close_worktree(&agent, row.key).await;
        if removal.is_some_and(|removal| removal.is_busy) {
            return Err(Error::new(ErrorKind::Busy, "a turn or a background task uses the git worktree of the thread"));
        }
    }
    Ok(())
}

/// Opens a conversation that was closed, with the messages of its newest session. One that is open stays as it is.
///
/// # Errors
/// `busy`, `limit_reached` if the agent has too many conversations at work, `disk_full`, `storage_failed`.
pub(crate) async fn open(app: &DiscordApp, agent: &AgentEntry, key: ConversationKey) -> Result<()> {
    if key.is_main() {
        return Ok(());
    }
    let _one_at_a_time = app.channels.thread_locks.lock(key.id).await;
    let ops = &app.ops;
    let row = ops.agents.conversations.get(key);
    if row.is_none_or(|row| row.closed_at.is_none()) || ops.registry.context_info(key).is_some() {
        return Ok(());
    }
    let params = RestoreParams {
        agent: Some(agent.settings.name.clone()),
        conversation: Some(key.id.to_string()),
        session: "latest".to_owned(),
        own: true,
        ..RestoreParams::default()
    };
    let restoring = restore::restore_as(
        &ops.agent_resolver,
        &ops.sessions,
        &ops.sessions_lock,
        &ops.registry,
        &ops.clock,
        params,
        &Requester::Nobody,
    );
    match with_expected_agent(agent.settings.id, restoring).await {
        Ok(_) => Ok(()),
        Err(failure) if is_temporary(failure.kind) => Err(failure),
        // There is nothing to bring back: the next message opens it.
        Err(failure) if failure.kind == ErrorKind::SessionNotFound => Ok(()),
        Err(failure) => {
            tracing::warn!(agent = %agent.settings.name, %failure, "cannot restore the conversation of a thread; it starts empty");
            Ok(())
        }
    }
}

fn is_temporary(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Busy
            | ErrorKind::LimitReached
            | ErrorKind::DiskFull
            | ErrorKind::StorageFailed
            | ErrorKind::StorageUnavailable
            | ErrorKind::Stopping
            | ErrorKind::AgentNotFound
    )
}

/// Opens the conversation of a thread that was unarchived.
pub(super) async fn reopen(app: Arc<DiscordApp>, thread: ChannelId) {
    let Some(agent) = app.channels.target_of(thread).map(|target| target.agent) else { return };
    let Some(row) = of_thread(&app.ops, agent.settings.id, thread) else { return };
    if let Err(failure) = open(&app, &agent, row.key).await {
        tracing::info!(%thread, %failure, "the conversation of a thread stays closed until the next message");
    }
}
