//! Workspaces that follow their agent: what a save or a hand-over has committed is stored as a bundle, and a claim brings the
//! workspace here up to the newest one. Only for agents with `checkpoint_workspace`, and with a store of such bundles.

use std::io::{Read as _, Seek as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chorus_agent_core::AgentSettings;
use chorus_catalog::{WorkspaceBundle, WorkspaceHandover};
use chorus_runtime::run_blocking;
use chorus_session::conversation::ConversationKey;
use chorus_store::{DB_DIR, NewWorkspaceBundle, SharedWorkspaces};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::checkpoint_on_save::{with_timeout, workspace_context};
use super::registry::Registry;
use crate::tools::checkpoint::create_checkpoint;
use crate::tools::workspace_chain::{FetchedBundle, count_newer_files, known_tip, make_bundle, set_known_tip};
use crate::tools::workspace_restore::{LocalFiles, prepare_repository, restore_chain};

/// Time limit for making and storing a bundle.
const STORE_TIMEOUT: Duration = Duration::from_secs(20);

/// Time limit for bringing a workspace up to date at a claim.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum number of bundles since the last complete one.
const MAX_CHAIN: usize = 32;

/// Bytes up to which later bundles are not compared with the complete one.
const MIN_FOLD_BYTES: u64 = 1 << 20;

/// Largest chain in bytes that a claim fetches.
const MAX_FETCHED_BYTES: u64 = 512 << 20;

/// Stores what is committed in the workspace of an agent and not stored yet. Does nothing without a store of bundles.
///
/// # Errors
/// The reason, as a text that continues "because".
pub(super) async fn store_checkpoints(registry: &Arc<Registry>, settings: &Arc<AgentSettings>) -> Result<(), String> {
    let Some(shared) = registry.store.workspaces.clone().filter(|_| settings.checkpoint_workspace) else {
        return Ok(());
    };
    let cancel = CancellationToken::new();
    let _ends = cancel.clone().drop_guard();
    let work = Box::pin(store(registry, &*shared, settings, cancel.clone()));
    with_timeout(STORE_TIMEOUT, &cancel, work).await
}

async fn store(
    registry: &Arc<Registry>,
    shared: &dyn SharedWorkspaces,
    settings: &Arc<AgentSettings>,
    cancel: CancellationToken,
) -> Result<(), String> {
    let _alone = registry.workspace_locks.lock(settings.id).await;
    let bundles = shared.list(settings.id).await.map_err(|e| e.to_string())?;
    let last = bundles.last();
    let first = newest_chain(&bundles);
    let complete = is_long(&bundles[first..]);
    let ctx = workspace_context(registry, settings, ConversationKey::main(settings.id), cancel);
    let out = tempfile::tempfile_in(registry.home.join(DB_DIR)).map_err(|e| e.to_string())?;
    let former = last.map(|last| last.tip.as_str());
    let Some(bundle) = make_bundle(&ctx, former, complete, out).await? else { return Ok(()) };
    let mut file = bundle.file;
    let content = run_blocking(move || {
        let mut content = Vec::new();
        let read = file.rewind().and_then(|()| file.read_to_end(&mut content));
        read.map(|_| content).map_err(|e| chorus_base::error::Error::io("cannot read a bundle", &e))
    });
    let content = content.await.map_err(|e| e.to_string())?;
    let new = NewWorkspaceBundle {
        follows: last.map_or(0, |last| last.number),
        base: bundle.base,
        tip: bundle.tip.clone(),
        content,
        // A complete bundle of a workspace that does not have the former ones replaces none of them.
        replaces: match complete && known_tip(&ctx).await?.as_deref() == former {
            true => bundles.get(first).map(|first| first.number),
            false => None,
        },
    };
    shared.add(settings.id, new).await.map_err(|e| e.to_string())?;
    set_known_tip(&ctx, &bundle.tip).await
}

/// Returns the index of the newest complete bundle.
fn newest_chain(bundles: &[WorkspaceBundle]) -> usize {
    bundles.iter().rposition(|bundle| bundle.base.is_none()).unwrap_or_default()
}

/// Returns whether the next bundle is to be complete.
fn is_long(chain: &[WorkspaceBundle]) -> bool {
    let Some((complete, later)) = chain.split_first() else { return false };
    let bytes = later.iter().map(|bundle| bundle.bytes).sum::<u64>();
    chain.len() >= MAX_CHAIN || bytes > complete.bytes.max(MIN_FOLD_BYTES)
}

/// Does what has to be done before this daemon gives up an agent that is well: commits its workspace, stores that, and notes
/// for the next owner what could not be stored.
pub async fn hand_over(registry: &Arc<Registry>, settings: &Arc<AgentSettings>) {
    let Some(shared) = registry.store.workspaces.clone().filter(|_| settings.checkpoint_workspace) else { return };
    let cancel = CancellationToken::new();
    let _ends = cancel.clone().drop_guard();
    let ctx = workspace_context(registry, settings, ConversationKey::main(settings.id), cancel.clone());
    let commit = async { create_checkpoint(&ctx, "Checkpoint: moved to another node").await.map(drop) };
    let mut stored = with_timeout(STORE_TIMEOUT, &cancel, Box::pin(commit)).await;
    if stored.is_ok() {
        stored = store_checkpoints(registry, settings).await;
    }
    let newer = match &stored {
        Ok(()) => Some(0),
        Err(why) => {
            tracing::warn!(agent = %settings.name, why, "cannot store a workspace before its agent moves");
            count_newer_files(&ctx).await.ok().flatten()
        }
    };
    let noted = async {
        let last = shared.list(settings.id).await?.pop();
        match last.zip(newer) {
            Some((last, newer)) => shared.set_handover(settings.id, last.number, newer).await,
            None => Ok(()),
        }
    };
    if let Err(failure) = noted.await {
        tracing::warn!(agent = %settings.name, %failure, "cannot note the state of a workspace before its agent moves");
    }
}

/// Brings the workspace of an agent that this daemon has just claimed, in `epoch`, up to the newest checkpoint. Returns what the
/// agent has to know about it.
pub async fn take_on(
    registry: &Arc<Registry>,
    settings: &Arc<AgentSettings>,
    epoch: i64,
    node: &str,
) -> Option<String> {
    let shared = registry.store.workspaces.clone().filter(|_| settings.checkpoint_workspace)?;
    let bundles = match shared.list(settings.id).await {
        Ok(bundles) => bundles,
        Err(failure) => {
            return Some(format!("Your workspace may be old: its checkpoints cannot be listed: {failure}."));
        }
    };
    let cancel = CancellationToken::new();
    let _ends = cancel.clone().drop_guard();
    let ctx = workspace_context(registry, settings, ConversationKey::main(settings.id), cancel.clone());
    if let Err(why) = with_timeout(RESTORE_TIMEOUT, &cancel, Box::pin(prepare_repository(&ctx))).await {
        tracing::warn!(agent = %settings.name, why, "cannot make a repository in a workspace");
    }
    let Some(last) = bundles.last().cloned() else {
        return Some(
            "No checkpoint of your workspace was stored; what was in it on another node is not here.".to_owned(),
        );
    };
    let work = Box::pin(restore(registry, &*shared, settings, bundles, (node, cancel.clone())));
    match with_timeout(RESTORE_TIMEOUT, &cancel, work).await {
        Ok(files) => describe(&last, epoch, &files),
        Err(why) => {
            let why = one_line(&why);
            tracing::warn!(agent = %settings.name, why, "cannot bring a workspace up to its newest checkpoint");
            Some(format!(
                "Your workspace is older than checkpoint {} of {} (from node {}), which cannot be restored here: {why}.",
                last.number,
                time(&last),
                last.node
            ))
        }
    }
}

async fn restore(
    registry: &Arc<Registry>,
    shared: &dyn SharedWorkspaces,
    settings: &Arc<AgentSettings>,
    mut bundles: Vec<WorkspaceBundle>,
    (node, cancel): (&str, CancellationToken),
) -> Result<LocalFiles, String> {
    let ctx = workspace_context(registry, settings, ConversationKey::main(settings.id), cancel);
    let known = known_tip(&ctx).await?;
    bundles.drain(..newest_chain(&bundles));
    let Some(tip) = bundles.last().map(|last| last.tip.clone()) else { return Ok(LocalFiles::Current) };
    if known.as_ref() == Some(&tip) {
        return Ok(LocalFiles::Current);
    }
    let first = bundles.iter().position(|bundle| Some(&bundle.tip) == known.as_ref()).map_or(0, |at| at + 1);
    bundles.drain(..first);
    let bytes = bundles.iter().map(|bundle| bundle.bytes).sum::<u64>();
    if bytes > MAX_FETCHED_BYTES {
        return Err(format!("it has {bytes} bytes, and the limit is {MAX_FETCHED_BYTES}"));
    }
    let dir = TempDir::new_in(registry.home.join(DB_DIR)).map_err(|e| e.to_string())?;
    let mut fetched = Vec::new();
    for bundle in bundles {
        let (tip, path) = (bundle.tip.clone(), dir.path().join(format!("{}.bundle", bundle.number)));
        let content = shared.read(bundle).await.map_err(|e| e.to_string())?;
        write(path.clone(), content).await?;
        fetched.push(FetchedBundle { tip, path });
    }
    let now = registry.clock.now().strftime("%Y-%m-%d-%H%M%S");
    restore_chain(&ctx, &fetched, &tip, &format!("{node}-{now}")).await
}

async fn write(path: PathBuf, content: Vec<u8>) -> Result<(), String> {
    let written = run_blocking(move || {
        std::fs::write(&path, content).map_err(|e| chorus_base::error::Error::io("cannot write a bundle", &e))
    });
    written.await.map_err(|e| e.to_string())
}

/// Says what the agent has to know about its workspace; `None` if nothing is missing and nothing was in the way.
fn describe(last: &WorkspaceBundle, epoch: i64, files: &LocalFiles) -> Option<String> {
    let missing = match &last.handover {
        Some(WorkspaceHandover { epoch: given, node, newer_files }) if *given + 1 == epoch => match newer_files {
            0 => None,
            1 => Some(format!("on node {node}, 1 file is newer")),
            count => Some(format!("on node {node}, {count} files are newer")),
        },
        _ => Some("what was changed after that on the node that had you is not in it".to_owned()),
    };
    let branch = match files {
        LocalFiles::Current => None,
        LocalFiles::OnBranch(branch) => {
            Some(format!("what this node had changed on its own is on the branch {branch}"))
        }
    };
    let parts: Vec<String> = missing.into_iter().chain(branch).collect();
    (!parts.is_empty()).then(|| {
        let (number, time, node) = (last.number, time(last), &last.node);
        format!("Your workspace is as of {time} (checkpoint {number}, from node {node}); {}.", parts.join("; "))
    })
}

fn time(bundle: &WorkspaceBundle) -> String {
    bundle.at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

fn one_line(why: &str) -> String {
    let line = why.lines().next().unwrap_or_default().trim().trim_end_matches('.');
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}
