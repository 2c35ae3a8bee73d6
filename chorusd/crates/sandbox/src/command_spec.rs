//! What to run, and within which limits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What a command may access and use.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// Writable, and the working directory. Visible under its own path.
    pub workspace: PathBuf,
    /// Further directories and files, visible under their own paths, outer ones first.
    pub shared: Vec<SharedPath>,
    /// Name of the author of git commits for repositories that set none.
    pub git_author: Option<String>,
    pub network: bool,
    pub limits: ResourceLimits,
}

/// A directory or file that a command sees besides its workspace.
///
/// No part of its path may be a symbolic link. Other commands may be able to rename it; therefore what is mounted is compared
/// with what was at the path when the command was planned, so that a link put in its place leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPath {
    pub path: PathBuf,
    pub access: PathAccess,
}

/// The access of a command to a shared path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathAccess {
    ReadOnly,
    /// Read-only, and left out if it is not there any more when the command starts.
    ReadOnlyIfPresent,
    Writable,
    /// An empty directory in memory takes its place. Later paths may be below it.
    Replaced,
}

/// Resource limits of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Time from start to end; `None` for no limit.
    pub time: Option<Duration>,
    /// Bytes of memory for each process and for all together. Each private directory may hold a quarter of it.
    pub memory: u64,
    /// Processes and threads at one time.
    pub processes: u64,
    /// Bytes of each file that the command writes.
    pub file: u64,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self { time: Some(Duration::from_secs(120)), memory: 4 << 30, processes: 4096, file: 8 << 30 }
    }
}

/// Environment variables with which tests lower limits: a number of bytes, a number of processes. They cannot raise a
/// limit.
const MEMORY_LIMIT_VAR: &str = "CHORUS_SANDBOX_MEMORY";
const PROCESS_LIMIT_VAR: &str = "CHORUS_SANDBOX_PROCESSES";

impl ResourceLimits {
    /// Returns these limits, lowered to those that tests set in the environment.
    #[must_use]
    pub(crate) fn lowered_by_env(self) -> Self {
        let least = |name: &str, most: u64| {
            let wanted = std::env::var(name).ok().and_then(|wanted| wanted.parse().ok());
            wanted.map_or(most, |wanted: u64| wanted.min(most))
        };
        Self {
            memory: least(MEMORY_LIMIT_VAR, self.memory),
            processes: least(PROCESS_LIMIT_VAR, self.processes),
            ..self
        }
    }
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Added to the clean environment.
    pub env: Vec<(OsString, OsString)>,
    pub confinement: Confinement,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    TimedOut,
    /// Its processes exceeded the memory limit.
    Memory,
}
