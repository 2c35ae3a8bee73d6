//! Workspaces that follow their agent: what a save or a hand-over has committed is stored as a bundle, and a claim brings the
//! workspace here up to the newest one. Only for agents with `checkpoint_workspace`, with a store of such bundles, and unless the
//! nodes share the directory of workspaces.

use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chorus_agent_core::AgentSettings;
use chorus_catalog::{WorkspaceBundle, WorkspaceHandover};
use chorus_runtime::run_blocking;
use chorus_session::conversation::ConversationKey;
use chorus_store::{DB_DIR, NewWorkspaceBundle, SharedWorkspaces};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::checkpoint_on_save::{has_worktree, tool_context, with_timeout, workspace_context};
use super::registry::Registry;
use crate::tools::ToolContext;
use crate::tools::checkpoint::create_checkpoint;
use crate::tools::workspace_chain::{
    FetchedBundle, MAX_BUNDLE_BYTES, count_newer_files, known_tip, make_bundle, set_known_tip,
};
use crate::tools::workspace_restore::{LocalFiles, join, prepare_repository, restore_chain};

/// Time limit for making and storing a bundle.
const STORE_TIMEOUT: Duration = Duration::from_secs(20);

/// Time limit for the wait until fewer others do the same.
const MAX_STORE_WAIT: Duration = Duration::from_secs(10);

/// Time limit for reading a chain that could not be read at the claim.
const JOIN_TIMEOUT: Duration = Duration::from_secs(8);

/// Time limit for bringing a workspace up to date at a claim.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(20);

/// Time limit for counting the files of a workspace that could not be stored.
const COUNT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of bundles since the last complete one.
const MAX_CHAIN: usize = 32;

/// Bytes up to which later bundles are not compared with the complete one.
const MIN_FOLD_BYTES: u64 = 1 << 20;

/// Largest chain in bytes that a claim fetches.
const MAX_FETCHED_BYTES: u64 = 512 << 20;

fn bundles_of(registry: &Registry, settings: &AgentSettings) -> Option<Arc<dyn SharedWorkspaces>> {
    registry.store.workspaces.clone().filter(|_| settings.checkpoint_workspace)
}

/// Stores what is committed in the workspace of an agent and not stored yet. Returns what a person has to know about it.
/// Does nothing without a store of bundles.
///
/// # Errors
/// The reason, as a text that continues "because".
pub(super) async fn store_checkpoints(
    registry: &Arc<Registry>,
    settings: &Arc<AgentSettings>,
) -> Result<Option<String>, String> {
    let Some(shared) = bundles_of(registry, settings).filter(|_| settings.shared_dir.is_none()) else {
        return Ok(None);
    };
    let wait = async {
        // In this order: several conversations of an agent count once.
        let alone = registry.workspace_locks.lock(settings.id).await;
        (alone, registry.checkpoint_limit.wait_for_bundle().await)
    };
    let waited = tokio::time::timeout(MAX_STORE_WAIT, wait).await;
    let _turn = waited.map_err(|_| "others are being stored for a long time")?;
    let joined = Box::pin(join_chain(registry, &*shared, settings)).await;
    let cancel = CancellationToken::new();
    let _ends = cancel.clone().drop_guard();
    let work = Box::pin(store(registry, &*shared, settings, cancel.clone()));
    let large = with_timeout(STORE_TIMEOUT, &cancel, work).await?;
    let notes: Vec<String> = joined.into_iter().chain(large).collect();
    Ok((!notes.is_empty()).then(|| notes.join("; ")))
}

/// Stores the next bundle. Returns a warning if other nodes will soon not fetch all of them.
async fn store(
    registry: &Arc<Registry>,
    shared: &dyn SharedWorkspaces,
    settings: &Arc<AgentSettings>,
    cancel: CancellationToken,
) -> Result<Option<String>, String> {
    let bundles = shared.list(settings.id).await.map_err(|e| e.to_string())?;
    let last = bundles.last();
    let first = newest_chain(&bundles);
    let complete = is_long(&bundles[first..]);
    let ctx = workspace_context(registry, settings, ConversationKey::main(settings.id), cancel);
    let former = last.map(|last| last.tip.as_str());
    let mut made = make_bundle(&ctx, former, complete, new_file(registry)?).await;
    if complete && made.is_err() {
        // It may be too large to be one.
        made = make_bundle(&ctx, former, false, new_file(registry)?).await;
    }
    let Some(bundle) = made? else { return Ok(None) };
    let is_complete = bundle.base.is_none();
    let mut file = bundle.file;
    let content = run_blocking(move || {
        let mut content = Vec::new();
        let read = file.rewind().and_then(|()| file.read_to_end(&mut content));
        read.map(|_| content).map_err(|e| chorus_base::error::Error::io("cannot read a bundle", &e))
    });
    let content = content.await.map_err(|e| e.to_string())?;
    let bytes = content.len() as u64 + if is_complete { 0 } else { total_bytes(&bundles[first..]) };
    let new = NewWorkspaceBundle {
        follows: last.map_or(0, |last| last.number),
        base: bundle.base,
        tip: bundle.tip.clone(),
        content,
        // A complete bundle of a workspace that does not have the former ones replaces none of them.
        replaces: match is_complete && known_tip(&ctx).await?.as_deref() == former {
            true => bundles.get(first).map(|first| first.number),
            false => None,
        },
    };
    shared.add(settings.id, new).await.map_err(|e| e.to_string())?;
    set_known_tip(&ctx, &bundle.tip).await?;
    let is_large = bytes > MAX_FETCHED_BYTES / 4 * 3;
    Ok(is_large.then(|| {
        let (bytes, limit) = (bytes >> 20, MAX_FETCHED_BYTES >> 20);
        format!("the workspace has {bytes} MiB of checkpoints; another node fetches at most {limit} MiB")
    }))
}

fn new_file(registry: &Registry) -> Result<std::fs::File, String> {
    tempfile::tempfile_in(registry.home.join(DB_DIR)).map_err(|e| e.to_string())
}

/// Reads the commits of the chain if this workspace lacks them, because they could not be restored when the agent was claimed: the next
/// bundle continues the chain then. The files stay; those of the chain get branches. Returns a sentence with their names.
async fn join_chain(
    registry: &Arc<Registry>,
    shared: &dyn SharedWorkspaces,
    settings: &Arc<AgentSettings>,
) -> Option<String> {
    let cancel = CancellationToken::new();
    let _ends = cancel.clone().drop_guard();
    let ctx = workspace_context(registry, settings, ConversationKey::main(settings.id), cancel.clone());
    let work = Box::pin(async {
        let bundles = shared.list(settings.id).await.map_err(|e| e.to_string())?;
        let known = known_tip(&ctx).await?;
        let Some(last) = bundles.last().cloned().filter(|last| known.as_ref() != Some(&last.tip)) else {
            return Ok(None);
        };
        let (_dir, fetched) = fetch(registry, shared, bundles, known.as_deref()).await?;
        let now = registry.clock.now().strftime("%Y-%m-%d-%H%M%S");
        let files = join(&ctx, &fetched, &last.tip, &format!("{}-{now}", last.node)).await?;
        Ok(Some((last.node, files)))
    });
    match with_timeout(JOIN_TIMEOUT, &cancel, work).await {
        Ok(found) => {
            let (node, files) = found?;
            describe_files(&files, &node).map(|files| format!("the workspace of node {node} could be read: {files}"))
        }
        Err(why) => {
            // Then the next bundle is complete, and this is not tried again.
            tracing::warn!(agent = %settings.name, why, "cannot read the checkpoints of a workspace before the next one");
            None
        }
    }
}

/// Returns the index of the newest complete bundle.
fn newest_chain(bundles: &[WorkspaceBundle]) -> usize {
    bundles.iter().rposition(|bundle| bundle.base.is_none()).unwrap_or_default()
}

/// Returns whether the next bundle is to be complete.
fn is_long(chain: &[WorkspaceBundle]) -> bool {
    let Some((complete, later)) = chain.split_first() else { return false };
    let bytes = total_bytes(later);
    if complete.bytes.saturating_add(bytes) >= MAX_BUNDLE_BYTES {
        // It may be too large, which is not tried with each save.
        return chain.len().is_multiple_of(MAX_CHAIN);
    }
    chain.len() >= MAX_CHAIN || bytes > complete.bytes.max(MIN_FOLD_BYTES)
}

fn total_bytes(bundles: &[WorkspaceBundle]) -> u64 {
    bundles.iter().map(|bundle| bundle.bytes).sum()
}

/// Does what has to be done before this daemon gives up an agent that is well: commits its workspace, stores that, and notes
/// for the next owner what could not be stored.
pub async fn hand_over(registry: &Arc<Registry>, settings: &Arc<AgentSettings>) {
    let Some(shared) = bundles_of(registry, settings).filter(|_| settings.shared_dir.is_none()) else { return };
    let cancel = CancellationToken::new();
    let _ends = cancel.clone().drop_guard();
    let ctx = workspace_context(registry, settings, ConversationKey::main(settings.id), cancel.clone());
    let worktrees = worktree_contexts(registry, settings, &cancel).await;
    const MESSAGE: &str = "Checkpoint: moved to another node";
    let commit = async {
        prepare_repository(&ctx).await?;
        create_checkpoint(&ctx, MESSAGE).await.map(drop)
    };
    let mut stored = with_timeout(STORE_TIMEOUT, &cancel, Box::pin(commit)).await;
    // Each has at least one file that is newer here if that fails.
    let mut not_committed = 0;
    let until = tokio::time::Instant::now() + STORE_TIMEOUT;
    for worktree in &worktrees {
        let left = until.saturating_duration_since(tokio::time::Instant::now());
        let commit = async { create_checkpoint(worktree, MESSAGE).await.map(drop) };
        if let Err(why) = with_timeout(left, &worktree.cancel, Box::pin(commit)).await {
            tracing::warn!(agent = %settings.name, why, "cannot commit a worktree before its agent moves");
            not_committed += 1;
        }
    }
    if stored.is_ok() {
        stored = store_checkpoints(registry, settings).await.map(drop);
    }
    let newer = match &stored {
        Ok(()) => Some(not_committed),
        Err(why) => {
            tracing::warn!(agent = %settings.name, why, "cannot store a workspace before its agent moves");
            // The former may have been cancelled.
            let cancel = CancellationToken::new();
            let ctx = workspace_context(registry, settings, ConversationKey::main(settings.id), cancel.clone());
            let count = async { count_newer_files(&ctx).await };
            let counted = with_timeout(COUNT_TIMEOUT, &cancel, count).await.ok().flatten();
            counted.map(|files| files + not_committed)
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
) -> Option<WorkspaceNews> {
    let shared = bundles_of(registry, settings)?;
    let bundles = match shared.list(settings.id).await {
        Ok(bundles) => bundles,
        Err(failure) => {
            let text = format!("Your workspace may be old: its checkpoints cannot be listed: {failure}.");
            return Some(WorkspaceNews { is_failure: true, ..WorkspaceNews::for_all(text) });
        }
    };
    let cancel = CancellationToken::new();
    let _ends = cancel.clone().drop_guard();
    let ctx = workspace_context(registry, settings, ConversationKey::main(settings.id), cancel.clone());
    if let Err(why) = with_timeout(RESTORE_TIMEOUT, &cancel, Box::pin(prepare_repository(&ctx))).await {
        tracing::warn!(agent = %settings.name, why, "cannot make a repository in a workspace");
    }
    let Some(last) = bundles.last().cloned() else {
        return Some(WorkspaceNews {
            text: "No checkpoint of your workspace was stored; what was in it on another node is not here.".to_owned(),
            // Nobody knows of files in it.
            for_all: false,
            is_failure: false,
        });
    };
    let work = Box::pin(restore(registry, &*shared, settings, bundles, (node, cancel.clone())));
    match with_timeout(RESTORE_TIMEOUT, &cancel, work).await {
        Ok(files) => describe(&last, epoch, &files).map(WorkspaceNews::for_all),
        Err(why) => {
            let why = one_line(&why);
            tracing::warn!(agent = %settings.name, why, "cannot bring a workspace up to its newest checkpoint");
            let next = match &settings.shared_dir {
                None => format!("If it can be read at the next save, its files get a branch from-{}-DATE.", last.node),
                Some(_) => "That is tried again when another node takes you on.".to_owned(),
            };
            let text = format!(
                "Your workspace is older than checkpoint {} of {} (from node {}), which cannot be restored here: {why}. {next}",
                last.number,
                time(&last),
                last.node
            );
            Some(WorkspaceNews { is_failure: true, ..WorkspaceNews::for_all(text) })
        }
    }
}

/// News about its workspace that an agent has to know.
#[derive(Debug)]
pub struct WorkspaceNews {
    pub text: String,
    /// True if `main` hears of it though nothing was said there yet.
    pub for_all: bool,
    /// True if what other nodes have stored could not be brought in.
    pub is_failure: bool,
}

impl WorkspaceNews {
    fn for_all(text: String) -> Self {
        Self { text, for_all: true, is_failure: false }
    }

    /// The nodes share the workspace of the agent, and `node` had another one, which is at `kept` now.
    pub fn of_another(node: &str, kept: &Path) -> Self {
        Self::for_all(format!(
            "Your workspace is the one that all nodes share. Node {node} had another one, with files from before; it is {} there.",
            kept.display()
        ))
    }
}

async fn restore(
    registry: &Arc<Registry>,
    shared: &dyn SharedWorkspaces,
    settings: &Arc<AgentSettings>,
    bundles: Vec<WorkspaceBundle>,
    (node, cancel): (&str, CancellationToken),
) -> Result<LocalFiles, String> {
    let ctx = workspace_context(registry, settings, ConversationKey::main(settings.id), cancel.clone());
    let known = known_tip(&ctx).await?;
    let Some(tip) = bundles.last().map(|last| last.tip.clone()) else { return Ok(LocalFiles::default()) };
    if known.as_ref() == Some(&tip) {
        return Ok(LocalFiles::default());
    }
    let (_dir, fetched) = fetch(registry, shared, bundles, known.as_deref()).await?;
    let worktrees = worktree_contexts(registry, settings, &cancel).await;
    let now = registry.clock.now().strftime("%Y-%m-%d-%H%M%S");
    restore_chain(&ctx, &worktrees, &fetched, &tip, &format!("{node}-{now}")).await
}

/// Returns the contexts of the conversations whose worktrees are here.
async fn worktree_contexts(
    registry: &Arc<Registry>,
    settings: &Arc<AgentSettings>,
    cancel: &CancellationToken,
) -> Vec<ToolContext> {
    let mut contexts = Vec::new();
    for row in registry.agents.conversations.of_agent(settings.id) {
        if has_worktree(registry, settings, row.key).await {
            let ctx = tool_context(registry, settings, row.key, cancel.clone()).await;
            contexts.extend(ctx.place.worktree().is_some().then_some(ctx));
        }
    }
    contexts
}

/// Fetches the bundles of the newest chain that come after the tip `known`. Returns the directory that they are in, too.
async fn fetch(
    registry: &Arc<Registry>,
    shared: &dyn SharedWorkspaces,
    mut bundles: Vec<WorkspaceBundle>,
    known: Option<&str>,
) -> Result<(TempDir, Vec<FetchedBundle>), String> {
    bundles.drain(..newest_chain(&bundles));
    let first = bundles.iter().position(|bundle| Some(&*bundle.tip) == known).map_or(0, |at| at + 1);
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
    Ok((dir, fetched))
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
    let parts: Vec<String> = missing.into_iter().chain(describe_files(files, &last.node)).collect();
    (!parts.is_empty()).then(|| {
        let (number, time, node) = (last.number, time(last), &last.node);
        format!("Your workspace is as of {time} (checkpoint {number}, from node {node}); {}.", parts.join("; "))
    })
}

/// Says which branches have what is not in the files.
fn describe_files(files: &LocalFiles, node: &str) -> Option<String> {
    let on = |names: &[String]| match names {
        [name] => format!("on the branch {name}"),
        names => format!("on the branches {}", names.join(", ")),
    };
    let saved = (!files.saved_as.is_empty())
        .then(|| format!("what this node had changed on its own is {}", on(&files.saved_as)));
    let not_taken = (!files.not_taken.is_empty())
        .then(|| format!("what node {node} had and the files here lack is {}", on(&files.not_taken)));
    let parts: Vec<String> = saved.into_iter().chain(not_taken).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn time(bundle: &WorkspaceBundle) -> String {
    bundle.at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

fn one_line(why: &str) -> String {
    let line = why.lines().next().unwrap_or_default().trim().trim_end_matches('.');
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}
