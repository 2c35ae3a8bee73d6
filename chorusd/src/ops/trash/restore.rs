//! `trash.restore`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_proto::methods::memory::MemoryEntry;
use chorus_proto::methods::trash::{RestoreParams, RestoreResult, TrashKind};
use chorus_proto::{Agent, ErrorKind, Session};

use crate::agent::Facts;
use crate::agent::directory::Entry;
use crate::config::agent::{AgentConfig, FILE};
use crate::failure::{Failure, Result};
use crate::ops::agent::{AGENTS, entry as agent_entry, room, row as agent_row};
use crate::ops::{Ops, blocking, memory as ops_memory, scan, view};
use crate::store::catalog::{MemoryRow, Order, Remembered, SessionRow};
use crate::store::session_files::{self, path_of, stamp};
use crate::store::trash::{self, Note, SessionNote, Trashed};

/// Puts an agent, a session or something remembered back where it was.
///
/// # Errors
/// `not_found`, `ambiguous`, `already_exists` where the name is taken; the entry stays in the trash then.
pub async fn restore(ops: &Ops, params: RestoreParams) -> Result<RestoreResult> {
    let _one_at_a_time = ops.agents_lock.lock().await;
    let _no_deletes = ops.sessions_lock.write().await;
    super::settle::unfinished(ops).await?;
    let entry = super::entry(super::entries(ops).await?, &params.id)?;
    let Some(note) = entry.note.clone() else {
        return Err(Failure::new(ErrorKind::Unsupported, format!("nobody knows what {} was", entry.id))
            .hint(format!("look into {}", entry.dir.display())));
    };
    let mut back = RestoreResult { agent: None, session: None, memory: None };
    match (note.kind, &note.session, &note.memory) {
        (TrashKind::Memory, _, Some(row)) => back.memory = memory(ops, &entry, row.clone()).await?,
        (TrashKind::Session, Some(of), _) => back.session = Some(session(ops, &entry, &note, of).await?),
        _ => back.agent = Some(agent(ops, &entry, &note).await?),
    }
    tracing::info!(entry = %entry.id, kind = ?note.kind, "restored from the trash");
    Ok(back)
}

/// The agent with its id, row and sessions.
async fn agent(ops: &Ops, entry: &Trashed, note: &Note) -> Result<Agent> {
    let name = &note.name;
    let dir = format!("{AGENTS}/{name}");
    let target = ops.home.join(&dir);
    // An agent whose own directory this is has no other.
    let stranger = |other: Arc<Entry>| other.facts.id != note.agent_id || other.facts.dir != target;
    if ops.directory.by_name(name).is_some_and(stranger) || target.symlink_metadata().is_ok() {
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
    if ops.directory.by_id(config.id).is_some_and(stranger) {
        return Err(taken(format!("an agent has the id of {name} already")).hint("`chorusctl agent list` shows it"));
    }
    if config.name != *name {
        return Err(Failure::new(ErrorKind::InvalidConfig, format!("agent.json in the trash is of {}", config.name))
            .hint(format!("set its `name` to {name}")));
    }
    let entry = out(entry, &target).await?;
    if let Err(failure) = ops.store.catalog.put_agent(agent_row(&dir, &config, stamp.clone())).await {
        back(entry, target).await;
        return Err(failure);
    }
    discard(entry).await;
    let back = ops.directory.put(agent_entry(&ops.home, &dir, &config, stamp));
    room::follow(ops, None, &back);
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
    // Its own row, without a file: the delete of an earlier version was cut short, or the file was moved here by hand.
    let stranger = |row: &SessionRow| row.header.id != of.id;
    let elsewhere = |row: SessionRow| row.header.agent_id != facts.id || row.header.session_id != note.name;
    if named.iter().any(stranger)
        || catalog.session(of.id).await?.is_some_and(elsewhere)
        || target.symlink_metadata().is_ok()
    {
        return Err(taken(format!("{} has a session {} already", facts.name, note.name))
            .hint(format!("`chorusctl session import {}` takes it in under a new name", entry.content().display())));
    }
    let entry = out(entry, &target).await?;
    match add_row(ops, facts, &note.name, of, target.clone()).await {
        Ok(row) => {
            discard(entry).await;
            view::session(ops, row).await
        }
        Err(failure) => {
            back(entry, target).await;
            Err(failure)
        }
    }
}

/// Adds the row of a session whose file lies at `path` again, as the trash knows it. That somebody wants it back is a use.
///
/// # Errors
/// A file that is gone, or what the database says.
pub(super) async fn add_row(
    ops: &Ops,
    facts: &Facts,
    name: &str,
    of: &SessionNote,
    path: PathBuf,
) -> Result<SessionRow> {
    let found = blocking(move || session_files::read(&path)).await?;
    let mut row = scan::row(facts, name, found, None, ops.clock.now());
    row.header.id = of.id;
    row.sha256.clone_from(&of.sha256);
    row.place = of.place.unwrap_or(row.place);
    ops.store.catalog.add_session(row.clone(), Order::AsPlaced, None).await?;
    Ok(row)
}

/// What was remembered is so again; it is the newest now.
async fn memory(ops: &Ops, entry: &Trashed, row: MemoryRow) -> Result<Option<MemoryEntry>> {
    let known =
        || taken("that is remembered already, in the same words".into()).hint("`chorusctl memory list` shows it");
    let knows = |entry: &Arc<Entry>| match &row.project {
        None => entry.facts.id == row.agent,
        project => entry.facts.project == *project,
    };
    let agent = ops.directory.all().into_iter().find(knows).ok_or_else(|| {
        let gone = match &row.project {
            None => format!("the agent {} is not there", row.agent_name),
            Some(project) => format!("no agent works on the project {project}"),
        };
        Failure::new(ErrorKind::AgentNotFound, gone)
            .hint("restore the agent first, where it is in the trash: chorusctl trash list")
    })?;
    let moving = hide(entry).await?;
    let catalog = &ops.store.catalog;
    let remembered = async {
        let Remembered::New(id) = catalog.remember(row.clone()).await? else { return Err(known()) };
        let by_hand = ops_memory::by_hand(ops, &agent, "restore", (None, Some(&row.text)));
        if let Err(failure) = catalog.audit(by_hand).await {
            catalog.unremember(vec![id]).await?;
            return Err(failure);
        }
        Ok(id)
    };
    let id = match remembered.await {
        Ok(id) => id,
        Err(failure) => {
            super::show(moving).await;
            return Err(failure);
        }
    };
    discard(moving).await;
    ops_memory::entry(ops, &agent, MemoryRow { id, ..row }).await
}

fn taken(what: String) -> Failure {
    Failure::new(ErrorKind::AlreadyExists, what)
}

async fn hide(entry: &Trashed) -> Result<Trashed> {
    let entry = entry.clone();
    blocking(move || {
        trash::begin_move(&entry)
            .map_err(|e| Failure::io(format_args!("cannot move {} out of the trash", entry.dir.display()), &e))
    })
    .await
}

/// Moves the content to `target`. The entry stays until its row is there.
async fn out(entry: &Trashed, target: &Path) -> Result<Trashed> {
    let (entry, target) = (hide(entry).await?, target.to_owned());
    blocking(move || match trash::move_out(&entry, &target) {
        Ok(()) => Ok(entry),
        Err(e) => {
            let _ = trash::settle(&entry);
            Err(Failure::io(format_args!("cannot move {} out of the trash", target.display()), &e))
        }
    })
    .await
}

async fn discard(entry: Trashed) {
    let discarded = blocking(move || {
        trash::discard(&entry);
        Ok(())
    });
    let _ = discarded.await;
}

/// Moves it into the trash again, after something failed.
async fn back(entry: Trashed, target: PathBuf) {
    let undone =
        blocking(move || trash::move_back(&entry, &target).map_err(|e| Failure::io("cannot undo a restore", &e)));
    if let Err(undo) = undone.await {
        tracing::error!(failure = %undo, "a failed restore from the trash could not be undone");
    }
}
