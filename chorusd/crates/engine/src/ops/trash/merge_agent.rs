//! Restores an agent of imported conversations whose place another one has taken: its sessions move there.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::move_dir;
use chorus_runtime::run_blocking;
use chorus_store::session_files::{path_of, stamp};
use chorus_store::session_form;
use chorus_store::trash::{EntryMetadata, TrashItem};
use chorus_store::{session_files, trash};
use uuid::Uuid;

use super::Trash;
use super::restore::{form_path, hide_entry};
use crate::agent::agent_index::AgentEntry;
use crate::capture::identity;
use crate::ops::catalog_sync;

/// Moves the sessions of an agent in the trash to the agent that holds the conversations of its program now. Those that it
/// has again stay in the trash. Returns their number.
///
/// # Errors
/// `storage_failed`; what was moved before stays moved, and the rest is still in the trash.
pub(super) async fn merge_agent(
    trash: &Trash,
    entry: &TrashItem,
    note: &EntryMetadata,
    into: &Arc<AgentEntry>,
) -> Result<u64> {
    let entry = hide_entry(entry).await?;
    let mut identities = Vec::new();
    let merged = merge_sessions(trash, &entry, (note.agent_id, into), &mut identities).await;
    trash.deleted.remove_identities(&identities).await?;
    let left = match merged {
        Ok(left) => left,
        Err(failure) => {
            super::make_visible(entry).await;
            return Err(failure);
        }
    };
    let content = entry.content();
    let (root, agent) = (trash.store.workspace_root.clone(), note.agent_id);
    let is_empty = left == 0
        && run_blocking(move || {
            let Some(root) = root else { return Ok(has_only_template(&content)) };
            let is_empty = has_only_template(&content) && has_only_template(&root.dir_of(agent));
            if is_empty {
                root.delete(agent)?;
            }
            Ok(is_empty)
        })
        .await?;
    if is_empty {
        // Not its usage, which the sessions have taken with them.
        let removed = entry.clone();
        let removed = run_blocking(move || {
            trash::delete_entry(&removed).map_err(|e| Error::io("cannot remove an entry of the trash", &e))
        });
        removed.await?;
    } else {
        super::make_visible(entry).await;
    }
    Ok(left)
}

async fn merge_sessions(
    trash: &Trash,
    entry: &TrashItem,
    (from, into): (Uuid, &Arc<AgentEntry>),
    identities: &mut Vec<(String, String)>,
) -> Result<u64> {
    let sessions = entry.content().join("sessions");
    let names = run_blocking(move || session_names(&sessions).map_err(|e| Error::io("cannot list the sessions", &e)));
    let (mut merged, mut left) = (HashSet::new(), 0);
    for name in names.await? {
        match merge_session(trash, &entry.content(), &name, (from, into), &merged).await? {
            Some((id, identity)) => {
                merged.insert(id);
                identities.push(identity);
            }
            None => left += 1,
        }
    }
    Ok(left)
}

/// Moves one session. Returns its id and identity; `None` if the agent has the conversation again, from another import than
/// `merged`.
async fn merge_session(
    trash: &Trash,
    content: &Path,
    name: &str,
    (from, into): (Uuid, &Arc<AgentEntry>),
    merged: &HashSet<Uuid>,
) -> Result<Option<(Uuid, (String, String))>> {
    let (settings, table) = (&into.settings, &trash.store.catalog.sessions);
    let path = session_form::find(path_of(content, name));
    let read = path.clone();
    let found = run_blocking(move || session_files::read(&read)).await?;
    let known = table.list_named(Some(from), name.to_owned()).await?.pop();
    let mut row = catalog_sync::session_row(settings, name, found, known, trash.clock.now());
    let (id, identity) = (row.header.id, identity(&row.header));
    let held = table.list_of_source(identity.0.clone(), identity.1.clone()).await?;
    let is_held = held.iter().map(|other| &other.header).any(|other| {
        other.agent_id == settings.id && !merged.contains(&other.id) && other.message_count >= row.header.message_count
    });
    // Its id may be that of another agent's session by now.
    if is_held || table.get(id).await?.is_some_and(|other| other.header.agent_id != from) {
        return Ok(None);
    }
    let taken = table.names_with_base(settings.id, name.to_owned()).await?;
    // Reserved until the row exists, so that no save takes the name.
    let reserved = trash.store.files.reserve_name(settings.id, &settings.dir, name, &taken);
    let target = form_path(&path, path_of(&settings.dir, &reserved.key().1)).await?;
    let (source, moved) = (path.clone(), target.clone());
    row.file_stamp = run_blocking(move || {
        let failed = |e: &io::Error| Error::io("cannot move a session out of the trash", e);
        move_dir(&source, &moved).map_err(|e| failed(&e))?;
        moved.metadata().map(|metadata| stamp(&metadata)).map_err(|e| failed(&e))
    })
    .await?;
    (row.header.agent_id, row.header.session_id) = (settings.id, reserved.key().1.clone());
    row.header.agent_name.clone_from(&settings.name);
    if let Err(failure) = table.move_to_agent(row).await {
        let undone = run_blocking(move || move_dir(&target, &path).map_err(|e| Error::io("cannot undo a restore", &e)));
        if let Err(undo) = undone.await {
            tracing::error!(failure = %undo, "cannot undo a failed restore from the trash");
        }
        return Err(failure);
    }
    Ok(Some((id, identity)))
}

/// Returns the names of the session files in a directory, sorted. Blocks.
fn session_names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(session_form::parse_file_name(&name).map(|(session, _)| session.to_owned()));
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// Returns true if the directory of an agent has nothing that a person or an agent has put there. Blocks.
fn has_only_template(dir: &Path) -> bool {
    let has_only = |part: &str, usual: &[&str]| {
        let entries = std::fs::read_dir(dir.join(part)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).all(|name| usual.iter().any(|usual| name == *usual))
    };
    has_only("sessions", &[]) && has_only("docs", &["README.md"]) && has_only("workspace", &[".git", ".gitkeep"])
}
