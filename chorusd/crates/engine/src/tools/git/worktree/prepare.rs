//! Makes the worktree of a conversation ready: creates it at its first use, and repairs it after a crash or a move.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::private_fs::{TEMPORARY_PREFIX, create_private, remove_dir, sync_dir};
use uuid::Uuid;

use super::directories::replace_file;
use super::{Worktree, run_blocking};
use crate::tools::git::checkpoint::open_repository;
use crate::tools::git::commit::{commit_staged, stage_changes};
use crate::tools::git::run::Git;
use crate::tools::git::{GitResult, repository_dirs};
use crate::tools::{ToolContext, WorkingDirectory};

/// Removes what git keeps for a worktree that is gone. Argument: `$1` that directory.
const FORGET_SCRIPT: &str = r#"rm -rf -- "$1""#;

/// Message of the first commit in a repository that has none.
const FIRST_COMMIT_MESSAGE: &str = "Files of the workspace";

/// The state of a worktree on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorktreeState {
    Complete,
    /// Nobody has worked in it yet, or it was removed.
    Missing,
    /// It has files, and the repository does not know it.
    Unregistered,
}

/// Returns where the conversation of `ctx`, which is that of the workspace, works: its worktree, which is created or repaired
/// if necessary.
pub async fn prepare(ctx: &ToolContext) -> WorkingDirectory {
    match find_or_create(ctx).await {
        Ok(worktree) => WorkingDirectory::Worktree(Arc::new(worktree)),
        Err(why) => {
            tracing::warn!(agent = %ctx.agent_name, why, "a conversation has no worktree");
            WorkingDirectory::Unavailable(why)
        }
    }
}

async fn find_or_create(ctx: &ToolContext) -> GitResult<Worktree> {
    if ctx.workspace().join(".git").symlink_metadata().is_err() {
        return Err(
            "the workspace is not a git repository, and each conversation of this agent works in a git worktree of \
                    it; to fix it, run git_init in the conversation main, or set `workspace` of the agent to shared"
                .into(),
        );
    }
    let host = ctx.services.host().ok_or("the daemon is stopping")?;
    let name = host.reserve_worktree(ctx.conversation).await.map_err(|failure| failure.to_string())?;
    let dir = ctx.files_dir.clone();
    let services = ctx.services.clone();
    let (worktree, is_known) = run_blocking(move || {
        let worktree = Worktree::find(&dir, &name)?;
        let is_known = services.worktrees.contains(&worktree);
        Ok((worktree, is_known))
    })
    .await?;
    if is_known {
        return Ok(worktree);
    }
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    let git = open_repository(ctx).await.map_err(|why| format!("cannot create a git worktree: {why}"))?;
    if repository_dirs(ctx)?.common_dir.join("reftable").is_dir() {
        return Err(
            "the repository keeps its references in a reftable, which worktrees of conversations cannot use; set \
                    `workspace` of the agent to shared"
                .into(),
        );
    }
    let examined = worktree.clone();
    if !run_blocking(move || connect_existing(&examined)).await? {
        create(git, &worktree).await?;
    }
    ctx.services.worktrees.insert(&worktree);
    Ok(worktree)
}

/// Connects a worktree with its repository if it exists, and removes what a crash left of one. Returns false if there is none.
/// Blocks.
///
/// # Errors
/// It cannot be used, or git keeps its name for one of somebody else.
pub(super) fn connect_existing(worktree: &Worktree) -> GitResult<bool> {
    match examine(worktree)? {
        WorktreeState::Complete => {
            worktree.check_owner()?;
            connect(worktree)?;
            Ok(true)
        }
        WorktreeState::Missing => Ok(false),
        WorktreeState::Unregistered => Err(format!(
            "the repository does not know the worktree {} any more; move that directory away to get a new one",
            worktree.dir.display()
        )),
    }
}

/// Examines what there is of a worktree, and removes what a crash left of one. Blocks.
fn examine(worktree: &Worktree) -> GitResult<WorktreeState> {
    let failed = |e: io::Error| format!("cannot read {}: {e}", worktree.dir.display());
    let parent = worktree.dir.parent().unwrap_or(&worktree.dir);
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX) {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let _ = if is_dir { remove_dir(&entry.path()) } else { fs::remove_file(entry.path()) };
        }
    }
    // Without the mark, the conversation may have worked in it.
    if creation_mark(worktree).symlink_metadata().is_ok() && worktree.dir.symlink_metadata().is_ok() {
        remove_dir(&worktree.dir).map_err(failed)?;
    }
    let has_files = match fs::read_dir(&worktree.dir) {
        Ok(mut entries) => entries.next().is_some(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => false,
        Err(e) => return Err(failed(e)),
    };
    let is_registered = worktree.git_dir().join("HEAD").symlink_metadata().is_ok();
    Ok(match (has_files, is_registered) {
        (true, true) => WorktreeState::Complete,
        (true, false) => WorktreeState::Unregistered,
        (false, _) => WorktreeState::Missing,
    })
}

/// Returns the path of the file that exists while a worktree is created.
fn creation_mark(worktree: &Worktree) -> PathBuf {
    worktree.dir.with_file_name(format!("{}.creating", worktree.name))
}

/// Connects a worktree with its repository, which may both have moved. Blocks.
fn connect(worktree: &Worktree) -> GitResult<()> {
    let Worktree { dir, repository, name } = worktree;
    let wrong = |why: String| format!("cannot repair the worktree {}: {why}", dir.display());
    // A temporary file in the worktree could be committed.
    let parent = dir.parent().unwrap_or(dir);
    replace_file(parent, "", name, ".git", &format!("gitdir: {}\n", worktree.git_dir().display())).map_err(wrong)?;
    let below = worktree.git_dir_below();
    let parts = [("gitdir", &*format!("{}/.git\n", dir.display())), ("commondir", "../..\n"), ("locked", "")];
    parts.into_iter().try_for_each(|(part, text)| replace_file(repository, &below, &below, part, text)).map_err(wrong)
}

/// Creates the worktree on its branch, which is created from the HEAD of the workspace if it does not exist.
async fn create(git: Git<'_>, worktree: &Worktree) -> GitResult<()> {
    let marked = worktree.clone();
    run_blocking(move || mark_creation(&marked).map_err(|e| format!("cannot create {}: {e}", marked.dir.display())))
        .await?;
    let git = git.with_directory(worktree.dir.clone());
    forget(&git, worktree).await?;
    if !git.run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await?.ok {
        stage_changes(&git, &[]).await?;
        commit_staged(&git, FIRST_COMMIT_MESSAGE, Vec::new()).await?;
    }
    let (branch, dir) = (worktree.branch(), worktree.dir.to_string_lossy().into_owned());
    let known = git.run(["show-ref", "--verify", "--quiet", &format!("refs/heads/{branch}")]).await?;
    let add = ["worktree", "add", "--quiet", "--lock"];
    let target = match known.ok {
        true => vec![dir.as_str(), &branch],
        false => vec!["-b", &branch, &dir, "HEAD"],
    };
    let added = git.output(add.into_iter().chain(target)).await;
    added.map_err(|why| format!("cannot create the git worktree of this conversation: {why}"))?;
    let marked = worktree.clone();
    run_blocking(move || {
        let mark = creation_mark(&marked);
        // Durable before anything is written in the worktree: with the mark it would be removed.
        let unmarked = fs::remove_file(&mark).and_then(|()| mark.parent().map_or(Ok(()), sync_dir));
        unmarked.map_err(|e| format!("cannot remove {}: {e}", mark.display()))
    })
    .await
}

fn mark_creation(worktree: &Worktree) -> io::Result<()> {
    if let Some(parent) = worktree.dir.parent() {
        create_private(parent)?;
        File::create(creation_mark(worktree))?.sync_all()?;
        sync_dir(parent)?;
    }
    create_private(&worktree.dir)
}

/// Removes the mark of a worktree that was not completely created. Blocks.
pub(super) fn remove_creation_mark(worktree: &Worktree) {
    let _ = fs::remove_file(creation_mark(worktree));
}

/// Takes the directory of a worktree away. Blocks.
pub(super) fn discard_directory(worktree: &Worktree) -> io::Result<()> {
    let parent = worktree.dir.parent().unwrap_or(Path::new("/"));
    let aside = parent.join(format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4()));
    fs::rename(&worktree.dir, &aside)?;
    // What is left of it is removed when a worktree is created.
    let _ = remove_dir(&aside);
    Ok(())
}

/// Removes what git keeps for a worktree whose directory is gone.
///
/// # Errors
/// It belongs to a worktree of somebody else.
pub(super) async fn forget(git: &Git<'_>, worktree: &Worktree) -> GitResult<()> {
    let examined = worktree.clone();
    run_blocking(move || examined.check_owner()).await?;
    git.run_shell(FORGET_SCRIPT, [worktree.git_dir().into_os_string()]).await
}
