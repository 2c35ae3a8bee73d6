//! A directory on a file system that all nodes of a cluster share, with the workspaces of all agents.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{TEMPORARY_PREFIX, create_private, remove_dir, sync, sync_dir, write_private};
use chorus_proto::ErrorKind;
use uuid::Uuid;

use crate::Store;
use crate::copy_tree::copy_tree;

/// The file with the id of the directory. A directory without it is another one, or its file system is not mounted.
pub(crate) const MARK: &str = ".chorus-workspaces";

/// The file beside a workspace that was copied, until what other nodes know of it is in it.
const COPIED: &str = ".copied";

/// The directories of an agent that are in the shared one.
const PARTS: [&str; 2] = ["workspace", "worktrees"];

/// Directory that the nodes share. That of an agent below it has the agent's id as its name.
#[derive(Debug)]
pub struct WorkspaceRoot {
    pub(crate) path: PathBuf,
    pub(crate) id: String,
}

/// The place in which the workspace of an agent was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundWorkspace {
    /// In the shared directory.
    Shared,
    /// In the shared directory, and another one on this machine, which has this path now.
    Both(PathBuf),
    /// On this machine. Its copy in the shared directory may be older than what other nodes have stored
    /// ([`WorkspaceRoot::set_complete`]).
    Local,
    /// Nowhere. An empty one is in the shared directory, of which the same is true.
    Nowhere,
}

impl WorkspaceRoot {
    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the directory is still there. Blocks.
    ///
    /// # Errors
    /// `storage_failed` if it is not mounted any more.
    pub fn check(&self) -> Result<()> {
        let failed = |why: String| {
            let what = format!("the workspaces in {} cannot be used: {why}", self.path.display());
            Error::new(ErrorKind::StorageFailed, what)
                .hint("mount the file system that the nodes share there, then try again")
        };
        match fs::read_to_string(self.path.join(MARK)) {
            Ok(text) if text.trim() == self.id => Ok(()),
            Ok(_) => Err(failed("it is another directory than that of the other nodes".to_owned())),
            Err(e) => Err(failed(format!("{MARK}: {e}"))),
        }
    }

    /// Returns those of the agents, each with its directory on this machine, whose workspaces are in the shared directory and nowhere
    /// else. Blocks.
    ///
    /// # Errors
    /// As [`WorkspaceRoot::check`].
    pub fn settled(&self, agents: &[(Uuid, PathBuf)]) -> Result<HashSet<Uuid>> {
        self.check()?;
        let failed = |e: io::Error| Error::io(format_args!("cannot read {}", self.path.display()), &e);
        let there = list_agents(&self.path).map_err(failed)?;
        let is_local = |dir: &Path| PARTS.iter().any(|part| dir.join(part).symlink_metadata().is_ok());
        let settled = agents.iter().filter(|(agent, dir)| there.contains(agent) && !is_local(dir));
        Ok(settled.map(|(agent, _)| *agent).collect())
    }

    /// Checks that it is there, and that files can be written. Blocks.
    ///
    /// # Errors
    /// As [`WorkspaceRoot::check`], or why no file can be written.
    pub fn try_to_write(&self) -> Result<()> {
        self.check()?;
        let file = self.path.join(format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4()));
        let tried = fs::File::create_new(&file).and_then(|file| sync(&file)).and_then(|()| fs::remove_file(&file));
        tried.map_err(|e| Error::io(format_args!("cannot write to {}", self.path.display()), &e))
    }

    /// Makes sure that the workspace of an agent is in the directory. If it is only in `dir`, that of the agent on this machine, it is
    /// copied with the worktrees of its conversations. What is here gets the names `workspace.moved` and `worktrees.moved`. Blocks.
    ///
    /// # Errors
    /// As [`WorkspaceRoot::check`]; nothing has changed then.
    pub fn settle(&self, agent: Uuid, dir: &Path) -> Result<FoundWorkspace> {
        self.check()?;
        let (target, local) = (self.path.join(agent.to_string()), local_parts(dir));
        if target.join(PARTS[0]).symlink_metadata().is_err() {
            self.copy(agent, dir, &local, true)?;
            local.iter().for_each(|part| drop(set_aside(dir, part)));
            return Ok(if local.is_empty() { FoundWorkspace::Nowhere } else { FoundWorkspace::Local });
        }
        if target.join(COPIED).symlink_metadata().is_ok() {
            // What was to follow the copy has failed.
            local.iter().for_each(|part| drop(set_aside(dir, part)));
            return Ok(FoundWorkspace::Local);
        }
        let kept = local.iter().filter_map(|part| set_aside(dir, part)).reduce(|first, _| first);
        Ok(kept.map_or(FoundWorkspace::Shared, FoundWorkspace::Both))
    }

    /// Moves the workspace of a new agent, which is in `dir`, to the directory. Blocks.
    ///
    /// # Errors
    /// As [`WorkspaceRoot::check`]; `already_exists` if an agent with this id has one.
    pub fn move_new(&self, agent: Uuid, dir: &Path) -> Result<()> {
        self.check()?;
        let target = self.path.join(agent.to_string());
        if target.symlink_metadata().is_ok() {
            let what = format!("{} exists: an agent with this id has, or had, its files there", target.display());
            return Err(Error::new(ErrorKind::AlreadyExists, what).hint("move that directory away, then try again"));
        }
        let local = local_parts(dir);
        self.copy(agent, dir, &local, false)?;
        for part in local {
            if let Err(e) = remove_dir(&dir.join(part)) {
                tracing::warn!("{} was copied to {} and stays: {e}", dir.join(part).display(), target.display());
            }
        }
        Ok(())
    }

    /// Notes that the workspace of an agent has what other nodes had stored of it. Blocks.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn set_complete(&self, agent: Uuid) -> Result<()> {
        match fs::remove_file(self.path.join(agent.to_string()).join(COPIED)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(format_args!("cannot write to {}", self.path.display()), &e))
            }
            _ => Ok(()),
        }
    }

    /// Copies parts of the directory of an agent: under another name first. Blocks.
    fn copy(&self, agent: Uuid, dir: &Path, parts: &[&str], is_marked: bool) -> Result<()> {
        let target = self.path.join(agent.to_string());
        let failed = |e: &io::Error| Error::io(format_args!("cannot copy the workspace to {}", target.display()), e);
        self.remove_unfinished(agent).map_err(|e| failed(&e))?;
        let staging = self.path.join(format!("{TEMPORARY_PREFIX}{agent}-{}", Uuid::new_v4()));
        let made = create_private(&staging.join(PARTS[0]))
            .and_then(|()| if is_marked { write_private(&staging.join(COPIED), b"") } else { Ok(()) })
            .and_then(|()| parts.iter().try_for_each(|part| copy_tree(&dir.join(part), &staging.join(part))))
            .and_then(|()| sync_dir(&staging))
            // Refused if the directory exists, unless it is empty.
            .and_then(|()| fs::rename(&staging, &target))
            .and_then(|()| sync_dir(&self.path));
        made.map_err(|e| {
            let _ = remove_dir(&staging);
            failed(&e)
        })
    }

    /// Deletes copies of a workspace whose making was interrupted.
    fn remove_unfinished(&self, agent: Uuid) -> io::Result<()> {
        let prefix = format!("{TEMPORARY_PREFIX}{agent}-");
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                // A node that was overtaken and still copies must not find it under its name when it has ended.
                let away = self.path.join(format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4()));
                fs::rename(entry.path(), &away)?;
                remove_dir(&away)?;
            }
        }
        Ok(())
    }

    /// Returns the directory of an agent. It need not exist.
    #[must_use]
    pub fn dir_of(&self, agent: Uuid) -> PathBuf {
        self.path.join(agent.to_string())
    }

    /// Deletes the workspace of an agent that is purged. Blocks.
    ///
    /// # Errors
    /// As [`WorkspaceRoot::check`], or if a file cannot be deleted.
    pub fn delete(&self, agent: Uuid) -> Result<()> {
        self.check()?;
        let dir = self.dir_of(agent);
        match remove_dir(&dir) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(format_args!("cannot delete {}", dir.display()), &e))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the agents that have a directory in the shared one. Blocks.
pub(crate) fn list_agents(path: &Path) -> io::Result<HashSet<Uuid>> {
    let mut agents = HashSet::new();
    for entry in fs::read_dir(path)? {
        agents.extend(entry?.file_name().to_str().and_then(|name| name.parse::<Uuid>().ok()));
    }
    Ok(agents)
}

/// Returns the parts that an agent has on this machine. Those that are empty, as each agent that is taken on has them at first, are deleted.
fn local_parts(dir: &Path) -> Vec<&'static str> {
    PARTS.iter().for_each(|part| drop(fs::remove_dir(dir.join(part))));
    PARTS.into_iter().filter(|part| dir.join(part).symlink_metadata().is_ok()).collect()
}

/// Gives a part on this machine a name of its own. Returns its path.
fn set_aside(dir: &Path, part: &str) -> Option<PathBuf> {
    let name = |number: u32| match number {
        1 => format!("{part}.moved"),
        number => format!("{part}.moved-{number}"),
    };
    let free = (1..100).map(|number| dir.join(name(number))).find(|path| path.symlink_metadata().is_err())?;
    match fs::rename(dir.join(part), &free) {
        Ok(()) => Some(free),
        Err(e) => {
            tracing::warn!("{} is not used any more, and cannot be renamed: {e}", dir.join(part).display());
            None
        }
    }
}

impl Store {
    /// Keeps the workspaces of agents in `root`.
    #[must_use]
    pub fn with_workspace_root(self, root: Option<WorkspaceRoot>) -> Self {
        Self { workspace_root: root.map(std::sync::Arc::new), ..self }
    }
}
