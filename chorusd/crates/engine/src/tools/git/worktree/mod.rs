//! Git worktrees of conversations. With `workspace = "worktree"` each conversation except `main` works in one, on a branch
//! of the same name.
//!
//! A command of such a conversation sees the repository of the workspace read-only, except for the objects, the references
//! that start like its branch and the directory that git keeps for the worktree. So it can commit, and it cannot move the branch of
//! `main` or change the configuration. The workspace's commands can replace any part of the repository at any time;
//! therefore Chorus itself opens nothing in it through a symbolic link, and runs git only in the sandbox.

mod directories;
mod merge;
mod merge_record;
mod prepare;
mod remove;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::sync::Mutex;
use chorus_sandbox::{PathAccess, SharedPath};

use super::GitResult;
use crate::tools::ToolContext;
pub use merge::{MergeRefusal, MergedBranch, merge};
pub use prepare::prepare;
pub use remove::{RemovedWorktree, remove};

/// Directory of the worktrees beside an agent's workspace.
pub const WORKTREES_DIR: &str = "worktrees";

/// The first part of the names of their branches.
const BRANCH_NAMESPACE: &str = "conversation";

/// Files of a repository that git reads in a worktree. Others are those of operations in the workspace, or temporary.
const REPOSITORY_FILES: [&str; 6] = ["HEAD", "config", "config.worktree", "index", "packed-refs", "shallow"];

/// Those of them without which a command would see another repository.
const REQUIRED_FILES: [&str; 3] = ["HEAD", "config", "packed-refs"];

/// The text that git writes into `packed-refs` if there are no references to pack.
const PACKED_REFS_HEADER: &str = "# pack-refs with: peeled fully-peeled sorted \n";

/// The git worktree of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// The name that its directory and its branch have.
    pub name: String,
    /// Its directory, as a real path.
    pub dir: PathBuf,
    /// `.git` of the workspace, as a real path.
    pub repository: PathBuf,
}

impl Worktree {
    /// Returns the worktree `name` of an agent, whether it exists or not. `files_dir` has the workspace and the worktrees. Blocks.
    ///
    /// # Errors
    /// The agent has no workspace.
    pub fn find(files_dir: &Path, name: &str) -> GitResult<Self> {
        let real = |path: &Path| path.canonicalize().map_err(|e| format!("{}: {e}", path.display()));
        let (files_dir, workspace) = (real(files_dir)?, real(&files_dir.join("workspace"))?);
        let dir = files_dir.join(WORKTREES_DIR).join(name);
        Ok(Self { name: name.to_owned(), dir, repository: workspace.join(".git") })
    }

    /// Returns the name of its branch. Other branches with the same start belong to the conversation, too.
    #[must_use]
    pub fn branch(&self) -> String {
        branch_of(&self.name)
    }

    /// Returns the start of the names of its branches.
    fn branch_prefix(&self) -> String {
        format!("{BRANCH_NAMESPACE}/{}/", self.name)
    }

    /// Returns the directory that git keeps for it in the repository.
    pub(super) fn git_dir(&self) -> PathBuf {
        self.repository.join(self.git_dir_below())
    }

    /// Returns the path of [`Self::git_dir`] below the repository.
    fn git_dir_below(&self) -> String {
        format!("{WORKTREES_DIR}/{}", self.name)
    }

    /// Checks that what git keeps under its name is not that of a worktree that somebody else added. Blocks.
    ///
    /// # Errors
    /// The reason, with what to do.
    fn check_owner(&self) -> GitResult<()> {
        let kept = directories::read_below(&self.repository, &self.git_dir_below(), "gitdir").unwrap_or_default();
        let owner = self.git_dir().join(kept.trim());
        let own = self.dir.join(".git");
        if kept.trim().is_empty() || owner == own || !self.belongs_to(&owner) {
            return Ok(());
        }
        Err(format!(
            "git keeps another worktree under the name {} for {}; remove that one with git worktree remove, then try again",
            self.name,
            owner.parent().unwrap_or(&owner).display()
        ))
    }

    /// Returns true if `owner`, the `.git` of a directory other than its own, is that of a worktree that git keeps under its
    /// name. Not so if the agent was renamed or the home was copied: then there is nothing, or a worktree of another
    /// repository.
    fn belongs_to(&self, owner: &Path) -> bool {
        let Some(dir) = owner.parent().filter(|_| owner.ends_with(".git")) else { return false };
        if dir.canonicalize().is_ok_and(|dir| dir == self.dir) {
            return false;
        }
        if owner.symlink_metadata().is_err() {
            // A worktree of somebody may be on a disk that is not there now.
            let is_of_agent = dir.ends_with(Path::new(WORKTREES_DIR).join(&self.name));
            return !is_of_agent && self.dir.join(".git").symlink_metadata().is_err();
        }
        let text = directories::read_below(dir, "", ".git").unwrap_or_default();
        let target = text.strip_prefix("gitdir:").map(|path| dir.join(path.trim()));
        target.and_then(|path| path.canonicalize().ok()).is_some_and(|path| path == self.git_dir())
    }

    /// Returns what its commands see of the repository. An empty directory takes the place of the repository's, because git
    /// creates lock files there, and has the parts in it. Creates those that git removes when they are empty.
    ///
    /// # Errors
    /// The reason why the repository cannot be used.
    pub async fn shared_paths(self: &Arc<Self>) -> GitResult<Vec<SharedPath>> {
        let worktree = self.clone();
        run_blocking(move || {
            let root = &worktree.repository;
            let refs = format!("refs/heads/{}", worktree.branch_prefix());
            let mut writable = vec![worktree.git_dir()];
            for below in ["objects", &refs, &format!("logs/{refs}")] {
                writable.push(directories::create_below(root, below)?);
            }
            // Without the file, the references that a command packs would be lost with its memory.
            directories::create_file(root, "packed-refs", PACKED_REFS_HEADER)?;
            let shared = |path: PathBuf, access| SharedPath { path, access };
            let mut paths = vec![shared(root.clone(), PathAccess::Replaced)];
            let parts = directories::list_parts(root, &REPOSITORY_FILES)?.into_iter();
            let read_only = parts.filter(|path| !writable.contains(path));
            paths.extend(read_only.map(|path| {
                let is_required = REQUIRED_FILES.iter().any(|name| path.ends_with(name));
                shared(path, if is_required { PathAccess::ReadOnly } else { PathAccess::ReadOnlyIfPresent })
            }));
            paths.extend(writable.iter().cloned().map(|path| shared(path, PathAccess::Writable)));
            Ok(paths)
        })
        .await
    }

    /// Creates a directory of the repository if it does not exist, and returns its path.
    pub(super) async fn prepare_directory(self: &Arc<Self>, below: &'static str) -> GitResult<PathBuf> {
        let worktree = self.clone();
        run_blocking(move || directories::create_below(&worktree.repository, below)).await
    }
}

/// Returns the name of the branch of a worktree.
#[must_use]
pub fn branch_of(name: &str) -> String {
    format!("{BRANCH_NAMESPACE}/{name}/work")
}

/// Returns true if the repository of an agent's workspace, which is in `files_dir`, or the directory of its worktrees, has something that belongs to
/// a worktree with this name. Blocks.
#[must_use]
pub fn is_name_taken(files_dir: &Path, name: &str) -> bool {
    let Ok(worktree) = Worktree::find(files_dir, name) else { return false };
    let branch = format!("refs/heads/{BRANCH_NAMESPACE}/{name}");
    let paths = [worktree.dir.clone(), worktree.git_dir(), worktree.repository.join(&branch)];
    let is_packed = |line: &str| {
        let name = line.split_once(' ').map_or("", |(_, name)| name);
        name.strip_prefix(&branch).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    paths.iter().any(|path| path.symlink_metadata().is_ok())
        || directories::read_below(&worktree.repository, "", "packed-refs")
            .is_some_and(|text| text.lines().any(is_packed))
}

/// Refuses a branch that belongs to others, if the conversation has a worktree.
pub(super) fn check_own_branch(ctx: &ToolContext, branch: &str) -> GitResult<()> {
    match ctx.place.worktree() {
        Some(worktree) if !branch.starts_with(&worktree.branch_prefix()) => Err(format!(
            "this conversation works in a separate git worktree and may only use branches with names that start with {}; \
             its branch is {}",
            worktree.branch_prefix(),
            worktree.branch()
        )),
        _ => Ok(()),
    }
}

/// Worktrees that were found complete since the daemon started, by their directories.
#[derive(Debug, Default)]
pub struct KnownWorktrees(Mutex<HashSet<PathBuf>>);

impl KnownWorktrees {
    /// Returns true if the worktree was found complete and is still there. Blocks.
    fn contains(&self, worktree: &Worktree) -> bool {
        let is_file = |path: PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_file());
        self.0.lock().contains(&worktree.dir)
            && is_file(worktree.dir.join(".git"))
            && is_file(worktree.git_dir().join("HEAD"))
    }

    fn insert(&self, worktree: &Worktree) {
        self.0.lock().insert(worktree.dir.clone());
    }

    fn remove(&self, worktree: &Worktree) {
        self.0.lock().remove(&worktree.dir);
    }
}

async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> GitResult<T> + Send + 'static) -> GitResult<T> {
    chorus_runtime::spawn_blocking(work).await.map_err(|e| e.to_string())?
}
