//! `agent.destroy`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_proto::methods::agent::{DestroyParams, DestroyResult};
use chorus_proto::{AgentState, AgentStatus, EventType, Trigger};
use serde_json::json;
use uuid::Uuid;

use crate::agent::Facts;
use crate::agent::directory::Entry;
use crate::agent::event::{Reply, Verb};
use crate::failure::{Failure, Result};
use crate::ops::{Ops, blocking, select, view};
use crate::store::agents_dir::{create_private, move_dir, write_private};

/// Saves the live context, then takes the agent away: its directory goes to the trash, stays, or is deleted.
///
/// # Errors
/// `agent_not_found`, `invalid_params`, `disk_full`, `storage_failed`; the agent is as before then.
pub async fn destroy(ops: &Ops, params: DestroyParams) -> Result<DestroyResult> {
    if params.keep_files && params.purge {
        return Err(Failure::invalid("`keep_files` does not go with `purge`"));
    }
    let _one_at_a_time = ops.agents_lock.lock().await;
    let agent = select::agent(ops, Some(&params.name)).await?;
    let shown = view::agent(ops, &agent).await?;
    let was_chosen = ops.directory.chosen().is_some_and(|chosen| chosen.facts.id == agent.facts.id);
    // From here on nobody finds the agent, so nothing new begins while it goes.
    ops.directory.remove(agent.facts.id);
    match take_away(ops, &agent, &params).await {
        Ok((saved, files)) => {
            tracing::info!(agent = %params.name, files = ?files, "agent destroyed");
            ops.registry.tell(EventType::AgentDestroyed, Some(params.name.clone()), json!({"id": shown.id}));
            let path = files.clone().unwrap_or_default();
            let agent = chorus_proto::Agent {
                status: AgentStatus::Destroyed,
                state: AgentState::Destroyed,
                context: None,
                path,
                ..shown
            };
            Ok(DestroyResult { agent, saved, files })
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

type Gone = (Option<chorus_proto::Session>, Option<String>);

async fn take_away(ops: &Ops, agent: &Arc<Entry>, params: &DestroyParams) -> Result<Gone> {
    let facts = agent.facts.clone();
    if !params.keep_files {
        materialise_elsewhere(ops, facts.id).await?;
    }
    // The context is ended only when everything else is done: until then it can be had back.
    let saved = put_away(ops, &facts, false).await?;
    let _held = ops.registry.ask_leaving(facts.clone(), Verb::Hold).await?;
    let from = facts.dir.clone();
    let to = if params.keep_files { None } else { Some(trash(ops, &facts).await?) };
    let dir = to.as_ref().map_or(&from, |to| to).strip_prefix(&ops.home).unwrap_or(&from).to_owned();
    if let Err(failure) =
        ops.store.catalog.destroy_agent(facts.id, ops.clock.now(), dir.to_string_lossy().into_owned()).await
    {
        if let Some(to) = to {
            let back = blocking(move || {
                move_dir(&to, &from).map_err(|e| Failure::io("cannot undo a destroy", &e))?;
                if let Some(entry) = to.parent() {
                    let _ = std::fs::remove_dir_all(entry);
                }
                Ok(())
            });
            if let Err(undo) = back.await {
                tracing::error!(agent = %facts.name, failure = %undo, "a failed destroy could not be undone");
            }
        }
        return Err(failure);
    }
    drop(_held);
    put_away(ops, &facts, true).await?;
    let files = match (to, params.purge) {
        (Some(to), true) => {
            let entry = to.parent().map_or(to.clone(), Path::to_path_buf);
            blocking(move || {
                std::fs::remove_dir_all(&entry)
                    .map_err(|e| Failure::io(format_args!("cannot delete {}", entry.display()), &e))
            })
            .await?;
            None
        }
        (Some(to), false) => Some(to),
        (None, _) => Some(from),
    };
    Ok((saved, files.map(|path| path.to_string_lossy().into_owned())))
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

/// Moves an agent's directory into the trash, with a note of what it was. Answers where it is.
async fn trash(ops: &Ops, facts: &Facts) -> Result<PathBuf> {
    let now = ops.clock.now();
    let from = facts.dir.clone();
    let entry = ops.home.join("trash").join(format!("{}_{}", now.strftime("%Y-%m-%dT%H-%M-%SZ"), Uuid::new_v4()));
    let note = json!({
        "kind": "agent", "agent_id": facts.id, "name": facts.name, "deleted_at": now.to_string(),
        "from": from.strip_prefix(&ops.home).unwrap_or(&from).to_string_lossy(),
    });
    blocking(move || {
        let failed = |e: std::io::Error| Failure::io("cannot move the agent to the trash", &e);
        create_private(&entry).map_err(failed)?;
        let moved = (|| {
            write_private(&entry.join("entry.json"), format!("{note:#}\n").as_bytes())?;
            let to = entry.join("content");
            move_dir(&from, &to)?;
            Ok(to)
        })();
        if moved.is_err() {
            let _ = std::fs::remove_dir_all(&entry);
        }
        moved.map_err(failed)
    })
    .await
}
