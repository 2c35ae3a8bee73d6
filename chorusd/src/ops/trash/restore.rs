//! `trash.restore`.

use std::path::Path;

use chorus_proto::methods::trash::{RestoreParams, RestoreResult, TrashKind};
use chorus_proto::{Agent, ErrorKind, Session};

use crate::config::agent::{AgentConfig, FILE};
use crate::failure::{Failure, Result};
use crate::ops::agent::{AGENTS, entry as agent_entry, row as agent_row};
use crate::ops::{Ops, blocking, scan, view};
use crate::store::session_files::{self, path_of, stamp};
use crate::store::trash::{self, Note, SessionNote, Trashed};

/// Puts an agent or a session back where it was.
///
/// # Errors
/// `not_found`, `ambiguous`, `already_exists` where the name is taken; the entry stays in the trash then.
pub async fn restore(ops: &Ops, params: RestoreParams) -> Result<RestoreResult> {
    let _one_at_a_time = ops.agents_lock.lock().await;
    let _no_deletes = ops.sessions_lock.write().await;
    let entry = super::entry(super::entries(ops).await?, &params.id)?;
    let Some(note) = entry.note.clone() else {
        return Err(Failure::new(ErrorKind::Unsupported, format!("nobody knows what {} was", entry.id))
            .hint(format!("look into {}", entry.dir.display())));
    };
    let (agent, session) = match (note.kind, &note.session) {
        (TrashKind::Session, Some(of)) => (None, Some(session(ops, &entry, &note, of).await?)),
        _ => (Some(agent(ops, &entry, &note).await?), None),
    };
    tracing::info!(entry = %entry.id, name = %note.name, "restored from the trash");
    Ok(RestoreResult { agent, session })
}

/// The agent with its id, row and sessions.
async fn agent(ops: &Ops, entry: &Trashed, note: &Note) -> Result<Agent> {
    let name = &note.name;
    let dir = format!("{AGENTS}/{name}");
    let target = ops.home.join(&dir);
    if ops.directory.by_name(name).is_some() || target.symlink_metadata().is_ok() {
        return Err(taken(format!("there is an agent {name} already"))
            .hint(format!("rename that one first: chorusctl agent config {name} name NEW")));
    }
    let (file, defaults) = (entry.content().join(FILE), ops.defaults());
    let (config, stamp) = blocking(move || {
        let unusable = |why: String| {
            Failure::new(ErrorKind::InvalidConfig, format!("agent.json in the trash cannot be used: {why}"))
                .hint(format!("correct {}", file.display()))
        };
        let text = std::fs::read_to_string(&file).map_err(|e| unusable(e.to_string()))?;
        let config = AgentConfig::parse(&text, &defaults).map_err(unusable)?;
        let stamp = std::fs::metadata(&file).map(|metadata| stamp(&metadata)).unwrap_or_default();
        Ok((config, stamp))
    })
    .await?;
    if ops.directory.by_id(config.id).is_some() {
        return Err(taken(format!("an agent has the id of {name} already")).hint("`chorusctl agent list` shows it"));
    }
    if config.name != *name {
        return Err(Failure::new(ErrorKind::InvalidConfig, format!("agent.json in the trash is of {}", config.name))
            .hint(format!("set its `name` to {name}")));
    }
    out(entry, &target).await?;
    if let Err(failure) = ops.store.catalog.put_agent(agent_row(&dir, &config, stamp.clone())).await {
        back(ops, note, &target).await;
        return Err(failure);
    }
    let back = ops.directory.put(agent_entry(&ops.home, &dir, &config, stamp));
    // What was done to its sessions in the trash is known from the first answer on.
    scan::if_possible(ops, &back.facts).await;
    Ok(view::changed(ops, &back).await)
}

async fn session(ops: &Ops, entry: &Trashed, note: &Note, of: &SessionNote) -> Result<Session> {
    let agent = ops.directory.by_id(note.agent_id).ok_or_else(|| {
        Failure::new(ErrorKind::AgentNotFound, format!("its agent {} is not there", of.agent_name))
            .hint("restore the agent first, where it is in the trash: chorusctl trash list")
    })?;
    let facts = &agent.facts;
    let target = path_of(&facts.dir, &note.name);
    let catalog = &ops.store.catalog;
    let named = catalog.sessions_named(Some(facts.id), note.name.clone()).await?;
    if !named.is_empty() || catalog.session(of.id).await?.is_some() || target.symlink_metadata().is_ok() {
        return Err(taken(format!("{} has a session {} already", facts.name, note.name))
            .hint(format!("`chorusctl session import {}` takes it in under a new name", entry.content().display())));
    }
    out(entry, &target).await?;
    let (path, now) = (target.clone(), ops.clock.now());
    let added = async {
        let found = blocking(move || session_files::read(&path)).await?;
        let mut row = scan::row(facts, &note.name, found, None, now);
        row.header.id = of.id;
        row.sha256.clone_from(&of.sha256);
        row.last_used_at = of.last_used_at;
        catalog.add_session(row.clone(), None).await?;
        Ok(row)
    };
    match added.await {
        Ok(row) => view::session(ops, row).await,
        Err(failure) => {
            back(ops, note, &target).await;
            Err(failure)
        }
    }
}

fn taken(what: String) -> Failure {
    Failure::new(ErrorKind::AlreadyExists, what)
}

async fn out(entry: &Trashed, target: &Path) -> Result<()> {
    let (entry, target) = (entry.clone(), target.to_owned());
    blocking(move || {
        trash::take_out(&entry, &target)
            .map_err(|e| Failure::io(format_args!("cannot move {} out of the trash", target.display()), &e))
    })
    .await
}

/// Into the trash again, after something failed.
async fn back(ops: &Ops, note: &Note, target: &Path) {
    let (home, target, note) = (ops.home.clone(), target.to_owned(), note.clone());
    let undone = blocking(move || {
        trash::put(&home, &target, &note).map(drop).map_err(|e| Failure::io("cannot undo a restore", &e))
    });
    if let Err(undo) = undone.await {
        tracing::error!(failure = %undo, "a failed restore from the trash could not be undone");
    }
}
