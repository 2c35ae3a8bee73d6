//! `agent.destroy`.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chorus_proto::methods::agent::{DestroyParams, DestroyResult};
use chorus_proto::methods::trash::TrashKind;
use chorus_proto::{AgentState, AgentStatus, EventType, Trigger};
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::time::timeout;
use uuid::Uuid;

use super::config::list_none;
use super::room;
use crate::agent::Facts;
use crate::agent::directory::Entry;
use crate::agent::event::{Reply, Verb};
use crate::failure::{Failure, Result};
use crate::ops::{Ops, blocking, select, trash as ops_trash, view};
use crate::store::Store;
use crate::store::journal::Head;
use crate::store::trash::{self, Note, Trashed};
use crate::tasks::Ended;

/// How long an agent that goes may take to hear that its tasks have ended.
const HEARING: Duration = Duration::from_secs(10);

/// Saves the live context, then takes the agent away: its directory goes to the trash, stays, or is deleted.
///
/// # Errors
/// `agent_not_found`, `invalid_params`, `disk_full`, `storage_failed`; the agent is as before then.
pub async fn destroy(ops: &Ops, params: DestroyParams) -> Result<DestroyResult> {
    let (mut done, agent) = take(ops, params).await?;
    let files = done.files.clone();
    // Discord may be slow: nobody else waits for it.
    let warnings = room::leave(ops, &agent, &mut done.agent, files.as_deref().map(Path::new)).await;
    done.warnings.extend(warnings);
    Ok(done)
}

/// Ends the live contexts of `heads` whose agents were destroyed, as a daemon leaves them that is killed between that commit and the end
/// of the context. Returns the others. One that has unsaved messages stays in the journal.
///
/// # Errors
/// A database that cannot be read or written.
pub async fn end_left(store: &Store, heads: Vec<Head>) -> Result<Vec<Head>> {
    let destroyed: HashSet<Uuid> = store.catalog.destroyed_agents().await?.into_iter().collect();
    let (left, live): (Vec<Head>, Vec<Head>) = heads
        .into_iter()
        .partition(|head| destroyed.contains(&head.agent) && head.saved_messages >= head.totals.messages);
    for head in left {
        store.journal.end(head.context).await?;
        tracing::info!(agent = %head.agent, "the context of a destroyed agent was ended");
    }
    Ok(live)
}

/// All but the channel.
async fn take(ops: &Ops, params: DestroyParams) -> Result<(DestroyResult, Arc<Entry>)> {
    if params.keep_files && params.purge {
        return Err(Failure::invalid("`keep_files` does not go with `purge`")
            .hint("give one of them: files are kept, or deleted for good"));
    }
    let _one_at_a_time = ops.agents_lock.lock().await;
    let _no_restores = ops.sessions_lock.write().await;
    let agent = select::agent(ops, Some(&params.name)).await?;
    let shown = view::agent(ops, &agent).await?;
    let was_chosen = ops.directory.chosen().is_some_and(|chosen| chosen.facts.id == agent.facts.id);
    // From here on nobody finds the agent, so nothing new begins while it goes.
    ops.directory.remove(agent.facts.id);
    let ended = end_tasks(ops, &agent).await;
    // It hears of that first: what it hears is in what is saved.
    let (_, taken) = tokio::join!(timeout(HEARING, tell(ops, &agent.facts, ended)), take_away(ops, &agent, &params));
    ops.registry.world.tasks.stay(agent.facts.id);
    match taken {
        Ok((saved, trashed)) => {
            let (files, warnings) = finish(ops, &agent.facts, trashed, &params).await;
            tracing::info!(agent = %params.name, files = ?files, "agent destroyed");
            ops.registry.tell(EventType::AgentDestroyed, Some(params.name.clone()), json!({"id": shown.id}));
            let path = files.clone().unwrap_or_default();
            let gone = chorus_proto::Agent {
                status: AgentStatus::Destroyed,
                state: AgentState::Destroyed,
                context: None,
                path,
                ..shown
            };
            Ok((DestroyResult { agent: gone, saved, files, warnings }, agent))
        }
        Err(failure) => {
            ops.directory.put((*agent).clone());
            if was_chosen {
                ops.directory.choose(Some(agent.facts.id));
            }
            Err(failure)
        }
    }
}

/// Ends what the agent has running in the background.
async fn end_tasks(ops: &Ops, agent: &Entry) -> Vec<Ended> {
    let ended = ops.registry.world.tasks.leave(agent.facts.id).await;
    if !ended.is_empty()
        && let Err(failure) = list_none(ops, agent).await
    {
        tracing::warn!(agent = %agent.facts.name, %failure, "agent.json lists tasks that do not run");
    }
    ended
}

/// Tells a conversation that goes on until it is saved that its tasks have ended. None is begun for that.
async fn tell(ops: &Ops, facts: &Arc<Facts>, ended: Vec<Ended>) {
    let live = ops.registry.info(facts.id).is_some();
    let append = |_, message, key| -> BoxFuture<'static, Result<()>> {
        let (registry, facts) = (ops.registry.clone(), facts.clone());
        let verb = Verb::Append { messages: vec![message], key: Some(key) };
        Box::pin(async move { if live { registry.ask_leaving(facts, verb).await.map(drop) } else { Ok(()) } })
    };
    ops.registry.world.tasks.tell_by(ended, append).await;
}

/// Everything up to the commit that destroys the agent. Where that fails, the agent is as before.
async fn take_away(
    ops: &Ops,
    agent: &Arc<Entry>,
    params: &DestroyParams,
) -> Result<(Option<chorus_proto::Session>, Option<Trashed>)> {
    let facts = agent.facts.clone();
    if !params.keep_files {
        materialise_elsewhere(ops, facts.id).await?;
    }
    // The context is ended only when everything else is done: until then it can be had back.
    let saved = put_away(ops, &facts, false).await?;
    let _held = ops.registry.ask_leaving(facts.clone(), Verb::Hold { goes: true }).await?;
    let from = facts.dir.clone();
    let trashed = if params.keep_files { None } else { Some(trash(ops, &facts).await?) };
    let dir = trashed.as_ref().map_or_else(|| from.clone(), Trashed::settled_content);
    let dir = dir.strip_prefix(&ops.home).unwrap_or(&from).to_string_lossy().into_owned();
    if let Err(failure) = ops.store.catalog.destroy_agent(facts.id, ops.clock.now(), dir).await {
        if let Some(entry) = trashed {
            let back =
                blocking(move || trash::take_out(&entry, &from).map_err(|e| Failure::io("cannot undo a destroy", &e)));
            if let Err(undo) = back.await {
                tracing::error!(agent = %facts.name, failure = %undo, "a failed destroy could not be undone");
            }
        }
        return Err(failure);
    }
    // The files of a purged agent are deleted where they are.
    match trashed {
        Some(entry) if !params.purge => Ok((saved, Some(ops_trash::show(entry).await))),
        trashed => Ok((saved, trashed)),
    }
}

/// What follows the commit: the agent is gone, so nothing here can fail any more. Answers where the files are, and what
/// a person should know.
async fn finish(
    ops: &Ops,
    facts: &Arc<Facts>,
    trashed: Option<Trashed>,
    params: &DestroyParams,
) -> (Option<String>, Vec<String>) {
    if let Err(failure) = put_away(ops, facts, true).await {
        // It is saved; left to its timer it would be put away again and again.
        ops.registry.idle.set(facts.id, None);
        tracing::warn!(agent = %facts.name, %failure, "the context of a destroyed agent stays in the journal");
    }
    let Some(entry) = trashed else { return (Some(facts.dir.to_string_lossy().into_owned()), Vec::new()) };
    let content = entry.settled_content().to_string_lossy().into_owned();
    if !params.purge {
        return (Some(content), Vec::new());
    }
    match ops_trash::delete(ops, entry).await {
        Ok(()) => (None, Vec::new()),
        Err(failure) => {
            tracing::warn!(agent = %facts.name, %failure, "a purge is incomplete");
            let warning = format!("the purge is incomplete: {failure}; `chorusctl trash empty` tries again");
            (Some(content), vec![warning])
        }
    }
}

async fn put_away(ops: &Ops, facts: &Arc<Facts>, end: bool) -> Result<Option<chorus_proto::Session>> {
    if ops.registry.info(facts.id).is_none() {
        return Ok(None);
    }
    let verb = Verb::PutAway { trigger: Trigger::Destroy, end };
    match ops.registry.ask_leaving(facts.clone(), verb).await?.reply {
        Reply::PutAway(session) => Ok(session.map(|session| *session)),
        _ => Err(Failure::internal("an agent gave the answer to another question")),
    }
}

/// Live contexts of other agents that the journal holds as references to this agent's sessions get their messages
/// written out before the files go.
async fn materialise_elsewhere(ops: &Ops, going: Uuid) -> Result<()> {
    for (agent, session) in ops.registry.referring_to(|_| true) {
        let owner = ops.store.catalog.session(session).await?.map(|row| row.header.agent_id);
        if agent != going && owner == Some(going) {
            ops.registry.ask(agent, Verb::Materialise(session)).await?;
        }
    }
    Ok(())
}

/// Moves an agent's directory into the trash, with a note of what it was.
async fn trash(ops: &Ops, facts: &Facts) -> Result<Trashed> {
    let (home, from) = (ops.home.clone(), facts.dir.clone());
    let note = Note {
        kind: TrashKind::Agent,
        agent_id: facts.id,
        name: facts.name.clone(),
        deleted_at: ops.clock.now(),
        from: from.strip_prefix(&ops.home).unwrap_or(&from).to_owned(),
        session: None,
        memory: None,
    };
    blocking(move || trash::put(&home, &from, &note).map_err(|e| Failure::io("cannot move the agent to the trash", &e)))
        .await
}
