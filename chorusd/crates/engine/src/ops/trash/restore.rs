//! The operation `trash.restore`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::error::{Error, Result};
use chorus_catalog::{MemoryRow, NewSession, RememberOutcome, SessionPlacement, SessionRow};
use chorus_config::agent::{AGENT_FILE, AgentConfig};
use chorus_proto::methods::memory::MemoryEntry;
use chorus_proto::methods::trash::{RestoreParams, RestoreResult, TrashKind};
use chorus_proto::{Agent, ErrorKind, Session, SessionHeader};
use chorus_runtime::run_blocking;
use chorus_store::session_files::{path_of, stamp};
use chorus_store::trash::{EntryMetadata, SessionMetadata, TrashItem};
use chorus_store::{session_files, session_form, trash};
use uuid::Uuid;

use super::Trash;
use super::merge_agent::merge_agent;
use crate::agent::agent_index::AgentEntry;
use crate::capture::identity;
use crate::ops::agent::{AGENTS_DIR, AgentDescriber, agent_entry, agent_row, discord_channel};
use crate::ops::catalog_sync::CatalogSync;
use crate::ops::schedule::Schedules;
use crate::ops::session::SessionReader;
use crate::ops::{catalog_sync, memory as ops_memory};

/// Restores an agent, a session or a memory to its original place. If capture has created another agent for the same program since,
/// the sessions go there.
///
/// # Errors
/// `not_found`, `ambiguous`, `already_exists` if the name of an agent is taken or a session exists already; the entry stays in the trash then.
pub async fn restore(
    trash: &Trash,
    sessions: &SessionReader,
    describer: &AgentDescriber,
    catalog_sync: &CatalogSync,
    schedules: &Schedules,
    params: RestoreParams,
) -> Result<RestoreResult> {
    // Before anything is locked: it may have to be claimed, with its files.
    let wanted = super::list_entries(&trash.home).await.and_then(|all| super::find_entry(all, &params.id));
    if let Some(note) = wanted.ok().and_then(|entry| entry.metadata) {
        match (note.kind, &note.memory) {
            (TrashKind::Session, _) => find_agent(trash, note.agent_id).await?,
            (TrashKind::Memory, Some(row)) if row.project.is_none() => find_agent(trash, row.agent).await?,
            _ => None,
        };
    }
    let _one_at_a_time = trash.agents.lock.lock().await;
    let _no_deletes = trash.sessions_lock.write().await;
    super::recovery::recover_unfinished(trash).await?;
    let entry = super::find_entry(super::list_entries(&trash.home).await?, &params.id)?;
    let Some(note) = entry.metadata.clone() else {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("the trash entry {} has no readable metadata", entry.id),
        )
        .hint(format!("inspect {}", entry.dir.display())));
    };
    let mut restored = RestoreResult { agent: None, session: None, former_name: None, memory: None, left: None };
    match (note.kind, &note.session, &note.memory) {
        (TrashKind::Memory, _, Some(row)) => restored.memory = restore_memory(trash, &entry, row.clone()).await?,
        (TrashKind::Session, Some(of), _) => {
            let (session, former_name) = restore_session(trash, sessions, &entry, &note, of).await?;
            (restored.session, restored.former_name) = (Some(session), former_name);
        }
        _ => match place_taker(trash, &entry, &note).await? {
            Some(into) => {
                let left = merge_agent(trash, &entry, &note, &into).await?;
                restored.left = Some(left).filter(|left| *left > 0);
                restored.agent = Some(describer.describe_changed(&into).await);
            }
            None => {
                restored.agent = Some(restore_agent(trash, describer, catalog_sync, &entry, &note).await?);
                if let Err(failure) = schedules.resume_agent(note.agent_id).await {
                    tracing::warn!(agent = %note.name, %failure, "cannot resume the schedules of a restored agent");
                }
            }
        },
    }
    tracing::info!(entry = %entry.id, kind = ?note.kind, "restored from the trash");
    Ok(restored)
}

/// Returns the agent that has the name of one in the trash, and holds the conversations of the same program: capture has created
/// it since.
async fn place_taker(trash: &Trash, entry: &TrashItem, note: &EntryMetadata) -> Result<Option<Arc<AgentEntry>>> {
    let other = trash.agents.index.by_name(&note.name).filter(|other| other.settings.id != note.agent_id);
    let Some((other, source)) = other.and_then(|other| Some((other.clone(), other.settings.import_source.clone()?)))
    else {
        return Ok(None);
    };
    let file = entry.content().join(AGENT_FILE);
    let config = run_blocking(move || Ok(std::fs::read(file).unwrap_or_default())).await?;
    let config: serde_json::Value = serde_json::from_slice(&config).unwrap_or_default();
    Ok((config["import_source"] == source).then_some(other))
}

/// Restores an agent with its id, row and sessions.
async fn restore_agent(
    trash: &Trash,
    describer: &AgentDescriber,
    catalog_sync: &CatalogSync,
    entry: &TrashItem,
    note: &EntryMetadata,
) -> Result<Agent> {
    let name = &note.name;
    let dir = format!("{AGENTS_DIR}/{name}");
    let target = trash.home.join(&dir);
    // The index may still list the agent itself with this directory.
    let stranger = |other: Arc<AgentEntry>| other.settings.id != note.agent_id || other.settings.dir != target;
    if trash.agents.index.by_name(name).is_some_and(stranger) || target.symlink_metadata().is_ok() {
        return Err(already_exists(format!("agent {name} already exists"))
            .hint(format!("rename that agent first: chorusctl agent config {name} name NEW")));
    }
    let (file, defaults) = (entry.content().join(AGENT_FILE), trash.agents.config.current());
    let (config, stamp) = run_blocking(move || {
        let unusable = |why: String| {
            Error::new(ErrorKind::InvalidConfig, format!("agent.json in the trash is invalid: {why}"))
                .hint(format!("fix {}", file.display()))
        };
        let text = std::fs::read_to_string(&file).map_err(|e| unusable(e.to_string()))?;
        let config = AgentConfig::parse(&text, &defaults).map_err(unusable)?;
        let stamp = std::fs::metadata(&file).map(|metadata| stamp(&metadata)).unwrap_or_default();
        Ok((config, stamp))
    })
    .await?;
    if trash.agents.index.by_id(config.id).is_some_and(stranger) {
        return Err(
            already_exists(format!("another agent has the same ID as {name}")).hint("find it: chorusctl agent list")
        );
    }
    if config.name != *name {
        return Err(Error::new(
            ErrorKind::InvalidConfig,
            format!("agent.json in the trash belongs to {}", config.name),
        )
        .hint(format!("set its `name` to {name}")));
    }
    trash.agents.claims.claim_new(config.id, &config.name).await?;
    let entry = move_out(entry, &target).await?;
    let registered = async {
        trash.agents.claims.settle_kept_workspace((config.id, &target)).await?;
        trash.store.catalog.agents.upsert(agent_row(&dir, &config, stamp.clone())).await
    };
    if let Err(failure) = registered.await {
        move_back(entry, target).await;
        return Err(failure);
    }
    discard_entry(entry).await;
    let agent = trash.agents.index.insert(agent_entry(&trash.home, &dir, &config, stamp));
    trash.agents.claims.store_files_of(&agent).await;
    let identities = trash.store.catalog.sessions.identities_of_agent(config.id).await?;
    trash.deleted.remove_identities(&identities).await?;
    discord_channel::sync_if_changed(&trash.agents.discord, None, &agent);
    // Sessions may have been changed in the trash; sync them before the first request.
    catalog_sync.try_sync_sessions(&agent.settings).await;
    Ok(describer.describe_changed(&agent).await)
}

/// Restores a session, under the first free name if its own is taken by now. Returns its former name in that case.
async fn restore_session(
    trash: &Trash,
    sessions: &SessionReader,
    entry: &TrashItem,
    note: &EntryMetadata,
    of: &SessionMetadata,
) -> Result<(Session, Option<String>)> {
    let agent = trash.agents.index.by_id(note.agent_id).ok_or_else(|| {
        Error::new(ErrorKind::AgentNotFound, format!("its agent {} does not exist", of.agent_name))
            .hint("if the agent is in the trash, restore it first: chorusctl trash list")
    })?;
    let settings = &agent.settings;
    let catalog = &trash.store.catalog;
    // The row of the session itself, without a file: an earlier version was interrupted while deleting it, or a person
    // has moved the file into the trash.
    let is_own_row = |row: &SessionRow| row.header.agent_id == settings.id && row.header.session_id == note.name;
    let row = catalog.sessions.get(of.id).await?;
    let has_file = session_form::exists(&path_of(&settings.dir, &note.name));
    let has_file = |row: &SessionRow| has_file || trash.store.is_shared(row);
    if let Some(known) = row.as_ref().filter(|row| !is_own_row(row) || has_file(row)) {
        let SessionHeader { session_id, agent_name, .. } = &known.header;
        return Err(already_exists(format!("{agent_name} already has this session: {session_id}"))
            .hint(format!("see it: chorusctl --agent {agent_name} show {session_id}")));
    }
    let mut taken = catalog.sessions.names_with_base(settings.id, note.name.clone()).await?;
    if row.is_some() {
        taken.retain(|name| *name != note.name);
    }
    // Reserved until the row exists, so that no save takes the name.
    let name = trash.store.files.reserve_name(settings.id, &settings.dir, &note.name, &taken);
    let name = &name.key().1;
    let target = form_path(&entry.content(), path_of(&settings.dir, name)).await?;
    // A file without a row whose deletion is recorded would be taken for a leftover.
    let _no_changes = trash.store.files.change_lock.lock().await;
    let entry = move_out(entry, &target).await?;
    match add_session_row(trash, settings, name, of, target.clone()).await {
        Ok(row) => {
            discard_entry(entry).await;
            let (program, conversation) = identity(&row.header);
            trash.deleted.remove(&program, &[conversation]).await?;
            let session = sessions.describe(row).await?;
            Ok((session, (*name != note.name).then(|| note.name.clone())))
        }
        Err(failure) => {
            move_back(entry, target).await;
            Err(failure)
        }
    }
}

/// Returns the path that the session file `content` gets: the plain `path`, or that of the compressed form.
pub(super) async fn form_path(content: &Path, path: PathBuf) -> Result<PathBuf> {
    let content = content.to_owned();
    run_blocking(move || {
        session_form::path_for(&content, path)
            .map_err(|e| Error::io(format_args!("cannot read {}", content.display()), &e))
    })
    .await
}

/// Returns the agent that something in the trash belongs to; `None` if it does not exist.
///
/// # Errors
/// `conflict` if another node has it: the trash is of this machine.
async fn find_agent(trash: &Trash, agent: Uuid) -> Result<Option<Arc<AgentEntry>>> {
    let found = match trash.agents.index.by_id(agent) {
        Some(entry) => return Ok(Some(entry)),
        None => match trash.agents.claims.find_by_id(agent).await {
            Err(Error { elsewhere: Some(there), .. }) => {
                // That may have been learned before the agent moved.
                trash.agents.claims.owner_hints.forget(&there.node);
                trash.agents.claims.find_by_id(agent).await
            }
            found => found,
        },
    };
    found.map_err(|failure| {
        let Some(there) = &failure.elsewhere else { return failure };
        let node = &there.node;
        Error::new(ErrorKind::Conflict, format!("its agent is on the node {node}, and the trash is here")).hint(
            format!(
                "try again once this node has the agent; chorusctl cluster drain {node} gives its agents to others"
            ),
        )
    })
}

/// Adds the row of a restored session whose file is at `path`, with the values that the trash has stored. The restore
/// counts as a use.
pub(super) async fn add_session_row(
    trash: &Trash,
    settings: &AgentSettings,
    name: &str,
    of: &SessionMetadata,
    path: PathBuf,
) -> Result<SessionRow> {
    let found = run_blocking(move || session_files::read(&path)).await?;
    let mut row = catalog_sync::session_row(settings, name, found, None, trash.clock.now());
    row.header.id = of.id;
    row.sha256.clone_from(&of.sha256);
    row.place = of.place.unwrap_or(row.place);
    trash.store.catalog.sessions.insert(NewSession::new(row.clone(), SessionPlacement::AtOwnPlace)).await?;
    Ok(row)
}

/// Restores a memory, which becomes the newest one.
async fn restore_memory(trash: &Trash, entry: &TrashItem, row: MemoryRow) -> Result<Option<MemoryEntry>> {
    let already_known =
        || already_exists("already remembered, with the same text".into()).hint("see it: chorusctl memory list");
    let knows = |entry: &Arc<AgentEntry>| match &row.project {
        None => entry.settings.id == row.agent,
        project => entry.settings.project == *project,
    };
    let agent = trash.agents.index.all().into_iter().find(knows).ok_or_else(|| {
        let reason = match &row.project {
            None => format!("agent {} does not exist", row.agent_name),
            Some(project) => format!("no agent works on the project {project}"),
        };
        Error::new(ErrorKind::AgentNotFound, reason)
            .hint("if the agent is in the trash, restore it first: chorusctl trash list")
    })?;
    let hidden = hide_entry(entry).await?;
    let catalog = &trash.store.catalog;
    let remembered = async {
        let RememberOutcome::New(id) = catalog.memories.insert(row.clone()).await? else { return Err(already_known()) };
        let by_hand = ops_memory::audit_row_of_change(&agent, "restore", (None, Some(&row.text)), trash.clock.now());
        if let Err(failure) = catalog.audit.append(by_hand).await {
            catalog.memories.delete(vec![id]).await?;
            return Err(failure);
        }
        Ok(id)
    };
    let id = match remembered.await {
        Ok(id) => id,
        Err(failure) => {
            super::make_visible(hidden).await;
            return Err(failure);
        }
    };
    discard_entry(hidden).await;
    ops_memory::to_entry(&trash.store.catalog, &agent, MemoryRow { id, ..row }).await
}

fn already_exists(what: String) -> Error {
    Error::new(ErrorKind::AlreadyExists, what)
}

pub(super) async fn hide_entry(entry: &TrashItem) -> Result<TrashItem> {
    let entry = entry.clone();
    run_blocking(move || {
        trash::begin_move(&entry)
            .map_err(|e| Error::io(format_args!("cannot move {} out of the trash", entry.dir.display()), &e))
    })
    .await
}

/// Moves the content to `target`. The entry stays until the row exists.
async fn move_out(entry: &TrashItem, target: &Path) -> Result<TrashItem> {
    let (entry, target) = (hide_entry(entry).await?, target.to_owned());
    run_blocking(move || match trash::move_out(&entry, &target) {
        Ok(()) => Ok(entry),
        Err(e) => {
            let _ = trash::settle(&entry);
            Err(Error::io(format_args!("cannot move {} out of the trash", target.display()), &e))
        }
    })
    .await
}

async fn discard_entry(entry: TrashItem) {
    let discarded = run_blocking(move || {
        trash::remove_if_empty(&entry);
        Ok(())
    });
    let _ = discarded.await;
}

/// Moves the content back into the trash after a failure.
async fn move_back(entry: TrashItem, target: PathBuf) {
    let undone =
        run_blocking(move || trash::move_back(&entry, &target).map_err(|e| Error::io("cannot undo a restore", &e)));
    if let Err(undo) = undone.await {
        tracing::error!(failure = %undo, "cannot undo a failed restore from the trash");
    }
}
