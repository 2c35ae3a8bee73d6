//! The operation `agent.destroy`.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::interruption_reason::Interruption;
use chorus_base::error::{Error, Result};
use chorus_journal::ContextRow;
use chorus_proto::methods::agent::{DestroyParams, DestroyResult};
use chorus_proto::methods::trash::TrashKind;
use chorus_proto::{AgentState, AgentStatus, EventType, Trigger};
use chorus_runtime::run_blocking;
use chorus_store::trash::{EntryMetadata, TrashItem};
use chorus_store::{Store, trash};
use futures_util::future::{BoxFuture, join_all};
use serde_json::json;
use tokio::time::timeout;
use uuid::Uuid;

use super::{AgentEditor, discord_channel};
use crate::agent::agent_index::AgentEntry;
use crate::agent::command;
use crate::agent::registry::Registry;
use crate::capture::conversation_hash;
use crate::ops::trash as ops_trash;
use crate::tasks::{EndedTask, Tasks};

/// The time limit for appending notices about ended tasks to the context of an agent that is being destroyed.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(10);

/// Saves the live context, then removes the agent. Its directory goes to the trash, stays, or is deleted. Its conversations are
/// not captured again until the agent is restored.
///
/// # Errors
/// `agent_not_found`, `invalid_params`, `disk_full`, `storage_failed`; the agent is unchanged then.
pub async fn destroy(editor: &AgentEditor, tasks: &Tasks, params: DestroyParams) -> Result<DestroyResult> {
    let (mut done, agent) = destroy_locked(editor, tasks, params).await?;
    let files = done.files.clone();
    // Outside the lock, because Discord may be slow.
    let warnings = discord_channel::leave_channels(
        &editor.agents,
        &editor.store.catalog.discord,
        &agent,
        &mut done.agent,
        files.as_deref().map(Path::new),
    )
    .await;
    done.warnings.extend(warnings);
    Ok(done)
}

/// Ends the live contexts of `heads` whose agents are destroyed. They remain if the daemon was killed between
/// destroying the agent and ending its context. Returns the others. A context with unsaved messages stays in the
/// journal.
pub async fn end_destroyed_contexts(store: &Store, heads: Vec<ContextRow>) -> Result<Vec<ContextRow>> {
    let destroyed: HashSet<Uuid> = store.catalog.agents.list_destroyed().await?.into_iter().collect();
    let (left, live): (Vec<ContextRow>, Vec<ContextRow>) = heads
        .into_iter()
        .partition(|head| destroyed.contains(&head.conversation.agent) && head.saved_messages >= head.totals.messages);
    for head in left {
        store.journal.end_context(head.context).await?;
        tracing::info!(agent = %head.conversation.agent, "ended the context of a destroyed agent");
    }
    Ok(live)
}

/// Destroys the agent except for its Discord channel.
async fn destroy_locked(
    editor: &AgentEditor,
    tasks: &Tasks,
    params: DestroyParams,
) -> Result<(DestroyResult, Arc<AgentEntry>)> {
    if params.keep_files && params.purge {
        return Err(Error::invalid("`keep_files` cannot be combined with `purge`")
            .hint("set one: `keep_files` keeps the files, `purge` deletes them permanently"));
    }
    let _one_at_a_time = editor.agents.lock.lock().await;
    let _no_restores = editor.sessions_lock.write().await;
    let agent = editor.agents.resolve(Some(&params.name)).await?;
    let description = editor.describer.describe(&agent).await?;
    let was_chosen = editor.agents.index.selected().is_some_and(|chosen| chosen.settings.id == agent.settings.id);
    // From here on nobody finds the agent, so nothing new begins.
    editor.agents.index.remove(agent.settings.id);
    let ended = stop_tasks(editor, tasks, &agent).await;
    // The notices come before the save, so that the saved session contains them.
    let (_, removed) = tokio::join!(
        timeout(NOTICE_TIMEOUT, notify_of_ended_tasks(&editor.registry, tasks, &agent.settings, ended)),
        remove_agent(editor, &agent, &params)
    );
    tasks.unblock_agent(agent.settings.id);
    match removed {
        Ok((saved, trashed)) => {
            let (files, warnings) = clean_up(editor, &agent.settings, trashed, &params).await;
            tracing::info!(agent = %params.name, files = ?files, "agent destroyed");
            editor.registry.emit_event(
                EventType::AgentDestroyed,
                Some(params.name.clone()),
                None,
                json!({"id": description.id}),
            );
            let path = files.clone().unwrap_or_default();
            let destroyed = chorus_proto::Agent {
                status: AgentStatus::Destroyed,
                state: AgentState::Destroyed,
                context: None,
                path,
                ..description
            };
            Ok((DestroyResult { agent: destroyed, saved, files, warnings }, agent))
        }
        Err(failure) => {
            editor.agents.index.insert((*agent).clone());
            if was_chosen {
                editor.agents.index.select(Some(agent.settings.id));
            }
            Err(failure)
        }
    }
}

/// Stops the agent's background tasks.
async fn stop_tasks(editor: &AgentEditor, tasks: &Tasks, agent: &AgentEntry) -> Vec<EndedTask> {
    let ended = tasks.stop_and_block_agent(agent.settings.id).await;
    if !ended.is_empty()
        && let Err(failure) = editor.clear_running_tasks(agent).await
    {
        tracing::warn!(agent = %agent.settings.name, %failure, "agent.json lists tasks that are not running");
    }
    ended
}

/// Appends notices about its ended tasks to the context if there is one; it does not begin a context for that.
async fn notify_of_ended_tasks(
    registry: &Arc<Registry>,
    tasks: &Tasks,
    settings: &Arc<AgentSettings>,
    ended: Vec<EndedTask>,
) {
    let append = |conversation, message, key| -> BoxFuture<'static, Result<()>> {
        let (registry, settings) = (registry.clone(), settings.clone());
        let verb = command::append(vec![message], Some(key));
        Box::pin(async move {
            match registry.context_info(conversation) {
                Some(_) => registry.ask_with_settings(conversation, settings, verb).await.map(drop),
                None => Ok(()),
            }
        })
    };
    tasks.notify_agents_with(ended, append).await;
}

/// Does everything up to the commit that destroys the agent. If it fails, the agent is unchanged.
fn remove_agent<'a>(
    editor: &'a AgentEditor,
    agent: &'a Arc<AgentEntry>,
    params: &'a DestroyParams,
) -> BoxFuture<'a, Result<(Option<chorus_proto::Session>, Option<TrashItem>)>> {
    Box::pin(async move {
        let settings = agent.settings.clone();
        if !params.keep_files {
            materialise_references(editor, settings.id).await?;
        }
        // The context ends only after everything else has succeeded, so that it can be kept until then.
        let saved = save_contexts(editor, &settings, false).await?;
        let _held = editor.registry.hold_agent(&settings, Some(Interruption::AgentDestroyed)).await?;
        let from = settings.dir.clone();
        let trashed = if params.keep_files { None } else { Some(move_to_trash(editor, &settings).await?) };
        let dir = trashed.as_ref().map_or_else(|| from.clone(), TrashItem::settled_content);
        let dir = dir.strip_prefix(&editor.agents.home).unwrap_or(&from).to_string_lossy().into_owned();
        let marked = async {
            let catalog = &editor.store.catalog;
            let identities = catalog.sessions.identities_of_agent(settings.id).await?;
            let tombstones: Vec<_> =
                identities.iter().map(|(program, conversation)| conversation_hash(program, conversation)).collect();
            catalog.agents.mark_destroyed(settings.id, editor.clock.now(), dir, tombstones.clone()).await?;
            editor.deleted.add_stored(tombstones);
            Ok(())
        };
        if let Err(failure) = marked.await {
            if let Some(entry) = trashed {
                let back = run_blocking(move || {
                    trash::restore_to(&entry, &from).map_err(|e| Error::io("cannot undo a destroy", &e))
                });
                if let Err(undo) = back.await {
                    tracing::error!(agent = %settings.name, failure = %undo, "cannot undo a failed destroy");
                }
            }
            return Err(failure);
        }
        // The files of a purged agent are deleted inside the trash, under their hidden name.
        match trashed {
            Some(entry) if !params.purge => Ok((saved, Some(ops_trash::make_visible(entry).await))),
            trashed => Ok((saved, trashed)),
        }
    })
}

/// Ends the context after the commit, and deletes the files of a purge. Nothing here can fail the operation any more.
/// Returns the path of the remaining files and warnings.
async fn clean_up(
    editor: &AgentEditor,
    settings: &Arc<AgentSettings>,
    trashed: Option<TrashItem>,
    params: &DestroyParams,
) -> (Option<String>, Vec<String>) {
    if let Err(failure) = save_contexts(editor, settings, true).await {
        // The context is saved already; its timer would only expire it again and again.
        for conversation in editor.registry.live_conversations(Some(settings.id)) {
            editor.registry.idle_timers.set(conversation, None);
        }
        tracing::warn!(agent = %settings.name, %failure, "cannot remove the context of a destroyed agent from the journal");
    }
    let Some(entry) = trashed else { return (Some(settings.dir.to_string_lossy().into_owned()), Vec::new()) };
    let content = entry.settled_content().to_string_lossy().into_owned();
    if !params.purge {
        return (Some(content), Vec::new());
    }
    match ops_trash::delete_entry(&editor.agents.index, &editor.store, entry).await {
        Ok(()) => (None, Vec::new()),
        Err(failure) => {
            tracing::warn!(agent = %settings.name, %failure, "purge incomplete");
            let warning = format!("the purge is incomplete: {failure}; retry: chorusctl trash empty");
            (Some(content), vec![warning])
        }
    }
}

/// Saves the unsaved messages of all conversations. Returns the session of `main`, or else of another one.
async fn save_contexts(
    editor: &AgentEditor,
    settings: &Arc<AgentSettings>,
    end: bool,
) -> Result<Option<chorus_proto::Session>> {
    let live = editor.registry.live_conversations(Some(settings.id));
    // All at once, so that the end of one turn does not let another one begin.
    let saves = live.iter().map(|conversation| {
        let save = command::save_if_unsaved(Trigger::Destroy, end);
        editor.registry.ask_with_settings(*conversation, settings.clone(), save)
    });
    let mut newest = None;
    for (conversation, saved) in live.iter().zip(join_all(saves).await) {
        newest = if conversation.is_main() { saved?.or(newest) } else { newest.or(saved?) };
    }
    Ok(newest)
}

/// Materialises the messages of other agents' live contexts that refer to this agent's sessions, before the files are
/// moved or deleted.
async fn materialise_references(editor: &AgentEditor, going: Uuid) -> Result<()> {
    for (conversation, session) in editor.registry.conversations_referring_to(|_| true) {
        let owner = editor.store.catalog.sessions.get(session).await?.map(|row| row.header.agent_id);
        if conversation.agent != going && owner == Some(going) {
            editor.registry.ask(conversation, command::materialise(session)).await?;
        }
    }
    Ok(())
}

/// Moves an agent's directory into the trash with a description of its origin.
async fn move_to_trash(editor: &AgentEditor, settings: &AgentSettings) -> Result<TrashItem> {
    let (home, from) = (editor.agents.home.clone(), settings.dir.clone());
    let note = EntryMetadata {
        kind: TrashKind::Agent,
        agent_id: settings.id,
        name: settings.name.clone(),
        deleted_at: editor.clock.now(),
        from: from.strip_prefix(&editor.agents.home).unwrap_or(&from).to_owned(),
        session: None,
        memory: None,
    };
    run_blocking(move || {
        trash::move_in(&home, &from, &note).map_err(|e| Error::io("cannot move the agent to the trash", &e))
    })
    .await
}
