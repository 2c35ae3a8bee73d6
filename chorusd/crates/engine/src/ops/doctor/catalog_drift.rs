//! Compares files with the catalog.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_config::agent::AGENT_FILE;
use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_proto::methods::trash::TrashKind;
use chorus_proto::pluralize::pluralize;
use chorus_runtime::run_blocking;
use chorus_store::session_files::stamp;
use chorus_store::session_form::{SessionForm, exists, parse_file_name};
use chorus_store::trash;
use chorus_store::trash::{Stage, TrashItem};
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::{check, check_with, join_some};
use crate::agent::agent_index::AgentEntry;
use crate::ops::{Ops, agent};

const REBUILD_COMMAND: &str = "chorusctl doctor --rebuild";

/// Differences between files and catalog, as `agent/session`.
#[derive(Debug, Default)]
struct SessionProblems {
    total: usize,
    missing: Vec<String>,
    /// Indexed sessions whose files are in the trash.
    deleted: Vec<String>,
    unknown: Vec<String>,
    changed: Vec<String>,
    corrupt: Vec<String>,
}

/// Checks agents and their sessions.
pub(super) fn checks<'a>(ops: &'a Ops) -> BoxFuture<'a, Result<Vec<Check>>> {
    Box::pin(async move {
        let mut found = SessionProblems::default();
        let trashed = list_trashed(ops).await?;
        // Of sessions whose bodies are elsewhere, files are copies that come and go.
        let agents = if ops.store.bodies.is_none() { ops.agents.all() } else { Vec::new() };
        for entry in agents {
            let agent = &entry.settings.name;
            let named = |session: &str| format!("{agent}/{session}");
            let corrupt: HashSet<String> =
                ops.store.catalog.sessions.corrupt_names(entry.settings.id).await?.into_iter().collect();
            let dir = entry.settings.dir.join("sessions");
            let there = run_blocking(move || Ok(read_stamps(&dir))).await?;
            // The catalog is read after the files, so that a session that is saved meanwhile has its row.
            let mut known: BTreeMap<String, String> =
                ops.store.catalog.sessions.file_stamps(entry.settings.id).await?.into_iter().collect();
            found.total += known.len();
            for (name, stamp) in there {
                match known.remove(&name) {
                    None => found.unknown.push(named(&name)),
                    Some(known) if known != stamp => found.changed.push(named(&name)),
                    Some(_) if corrupt.contains(&name) => found.corrupt.push(named(&name)),
                    Some(_) => {}
                }
            }
            let (sessions, entry_id) = (entry.settings.dir.join("sessions"), entry.settings.id);
            for name in known.into_keys().filter(|name| !exists(&sessions.join(format!("{name}.json")))) {
                let in_trash = trashed.iter().any(|entry| is_entry_of(entry, TrashKind::Session, entry_id, &name));
                if in_trash { &mut found.deleted } else { &mut found.missing }.push(named(&name));
            }
        }
        let mut checks = vec![check_agents(ops, &trashed).await?];
        checks.extend(trash_checks(&trashed));
        let trouble = [
            (
                Verdict::Fail,
                found.missing,
                "missing",
                format!("restore them from a backup, or remove them from the index: {REBUILD_COMMAND}"),
            ),
            (
                Verdict::Warn,
                found.deleted,
                "both in the index and in the trash",
                "restore one: chorusctl trash restore NAME; otherwise the next start completes the deletion".into(),
            ),
            (
                Verdict::Fail,
                found.corrupt,
                "corrupt",
                "restore them from a backup, or move them out of sessions/".into(),
            ),
            (
                Verdict::Warn,
                found.unknown,
                "not in the index yet",
                format!("they are indexed at the next start, or now: {REBUILD_COMMAND}"),
            ),
            (
                Verdict::Warn,
                found.changed,
                "changed since they were indexed",
                format!("they are indexed at the next start, or now: {REBUILD_COMMAND}"),
            ),
        ];
        let trouble = trouble.into_iter().filter(|(_, names, ..)| !names.is_empty());
        let trouble: Vec<Check> = trouble
            .map(|(verdict, names, what, hint)| {
                check_with("sessions", verdict, format!("{} {what}: {}", names.len(), join_some(&names)), hint)
            })
            .collect();
        if trouble.is_empty() && ops.store.bodies.is_none() {
            checks.push(check(
                "sessions",
                Verdict::Ok,
                format!("{}, all files present", pluralize(found.total as u64, "session")),
            ));
        }
        checks.extend(trouble);
        Ok(checks)
    })
}

/// Returns names and stamps of the session files in `dir`; none if it does not exist.
fn read_stamps(dir: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return BTreeMap::new() };
    let file = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let (session, form) = parse_file_name(&name)?;
        let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((form, session.to_owned(), stamp(&metadata)))
    };
    let mut files: Vec<(SessionForm, String, String)> = entries.filter_map(|entry| file(entry.ok()?)).collect();
    // A plain file counts more than a compressed one.
    files.sort_unstable_by(|one, two| two.cmp(one));
    files.into_iter().map(|(_, session, stamp)| (session, stamp)).collect()
}

/// Returns everything in the trash, including unfinished entries.
async fn list_trashed(ops: &Ops) -> Result<Vec<TrashItem>> {
    let home = ops.home.clone();
    run_blocking(move || {
        let read = || Ok([trash::list(&home)?, trash::list_unfinished(&home)?].concat());
        read().map_err(|e: std::io::Error| Error::io("cannot read the trash", &e))
    })
    .await
}

/// Returns true if the entry holds this agent, or this session of the agent.
fn is_entry_of(entry: &TrashItem, kind: TrashKind, agent: Uuid, name: &str) -> bool {
    let note = entry.metadata.as_ref();
    note.is_some_and(|note| note.kind == kind && note.agent_id == agent && note.name == name) && entry.has_content()
}

/// Checks for unfinished or empty entries of the trash.
fn trash_checks(entries: &[TrashItem]) -> Vec<Check> {
    let unfinished = entries.iter().filter(|entry| entry.stage != Stage::Settled).count();
    let holds = |entry: &&TrashItem| entry.metadata.as_ref().is_some_and(|note| note.kind != TrashKind::Memory);
    let empty: Vec<String> = entries
        .iter()
        .filter(|entry| entry.stage == Stage::Settled)
        .filter(holds)
        .filter(|entry| !entry.has_content())
        .map(|entry| entry.metadata.as_ref().map_or_else(|| entry.id.clone(), |note| note.name.clone()))
        .collect();
    let mut checks = Vec::new();
    if unfinished > 0 {
        let text = format!("{} into or out of the trash", pluralize(unfinished as u64, "interrupted move"));
        checks.push(check_with("trash", Verdict::Warn, text, "complete them: chorusctl daemon restart"));
    }
    if !empty.is_empty() {
        let text = format!("{} without content: {}", pluralize(empty.len() as u64, "entry"), join_some(&empty));
        checks.push(check_with("trash", Verdict::Warn, text, "remove them: chorusctl trash empty"));
    }
    checks
}

/// Checks that every agent has its directory with a valid agent.json, and every directory its agent.
async fn check_agents(ops: &Ops, trashed: &[TrashItem]) -> Result<Check> {
    let mut entries = ops.agent_resolver.all().await?;
    let known: HashSet<_> = entries.iter().map(|entry| entry.settings.dir.clone()).collect();
    // The directories of others are on other machines.
    entries.retain(|entry| ops.agent_resolver.claims.has(entry.settings.id));
    let problems: Vec<String> = entries
        .iter()
        .filter_map(|entry| Some(format!("{}: {}", entry.settings.name, entry.config_problem.as_ref()?)))
        .collect();
    let of = |entry: &Arc<AgentEntry>, trash: &TrashItem| {
        is_entry_of(trash, TrashKind::Agent, entry.settings.id, &entry.settings.name)
    };
    let deleted: Vec<String> = entries
        .iter()
        .filter(|entry| entry.settings.dir.symlink_metadata().is_err() && trashed.iter().any(|trash| of(entry, trash)))
        .map(|entry| entry.settings.name.clone())
        .collect();
    let own: Vec<_> = entries.iter().map(|entry| entry.settings.dir.clone()).collect();
    let (gone, dir) = (own, ops.home.join(agent::AGENTS_DIR));
    let (gone, strangers) = run_blocking(move || {
        let gone: Vec<_> = gone.into_iter().filter(|dir| !dir.join(AGENT_FILE).is_file()).collect();
        let there = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let strangers: Vec<_> = there.filter(|path| path.join(AGENT_FILE).is_file() && !known.contains(path)).collect();
        Ok((file_names(&gone), file_names(&strangers)))
    })
    .await?;
    Ok(if !deleted.is_empty() {
        let text = format!("{} with their directory in the trash: {}", deleted.len(), join_some(&deleted));
        check_with(
            "agents",
            Verdict::Fail,
            text,
            "restore it: chorusctl trash restore NAME; otherwise the next start does",
        )
    } else if !gone.is_empty() {
        let text = format!("{} without agent.json: {}", gone.len(), join_some(&gone));
        check_with("agents", Verdict::Fail, text, "restore the directory, or run `chorusctl agent destroy NAME`")
    } else if !problems.is_empty() {
        check_with("agents", Verdict::Warn, join_some(&problems), "repair agent.json; it is reloaded automatically")
    } else if !strangers.is_empty() {
        let text =
            format!("{} without an agent: {}", pluralize(strangers.len() as u64, "directory"), join_some(&strangers));
        check_with("agents", Verdict::Warn, text, "restore an agent from a kept directory: chorusctl agent init NAME")
    } else {
        check("agents", Verdict::Ok, format!("{}, all directories present", pluralize(entries.len() as u64, "agent")))
    })
}

fn file_names(paths: &[std::path::PathBuf]) -> Vec<String> {
    let name = |path: &std::path::PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut names: Vec<String> = paths.iter().map(name).collect();
    names.sort();
    names
}
