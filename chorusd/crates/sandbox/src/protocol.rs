//! The protocol between the daemon and the helper, over the socket that is the helper's standard input. Each side
//! notices by the end of the stream that the other is gone.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Isolation;

/// The argument that tells the daemon's program to run as a helper.
pub(crate) const HELPER_FLAG: &str = "--run-inside";
/// The stage, which follows [`HELPER_FLAG`]: create namespaces first, or only confine.
pub(crate) const NAMESPACES_STAGE: &str = "namespaces";
pub(crate) const CONFINE_STAGE: &str = "confine";

/// Request to end all processes (SIGTERM).
pub(crate) const TERMINATE: u8 = b'T';

/// The first message to the helper: its length in four bytes (big endian), then this as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchSpec {
    pub way: Isolation,
    pub network: bool,
    /// Mounts, in the order in which they are made.
    pub steps: Vec<MountStep>,
    /// Directories where files may be written.
    pub writable: Vec<PathBuf>,
    /// Paths at which must be what was planned, because other commands may have replaced it since.
    pub identities: Vec<PathIdentity>,
    pub dir: PathBuf,
    pub argv: Vec<OsString>,
    /// The complete environment.
    pub env: Vec<(OsString, OsString)>,
    /// Bytes.
    pub memory: u64,
    pub processes: u64,
    /// Bytes of one file.
    pub file: u64,
    /// The resources bound by each control group to join, in the order of the descriptors sent with this message.
    pub groups: Vec<BoundResources>,
    /// True if the last descriptor is the command's standard input; otherwise that is empty.
    pub has_input: bool,
}

/// A directory or file, by its path and by what the file system calls it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PathIdentity {
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
}

/// The resources that a control group bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BoundResources {
    pub memory: bool,
    pub processes: bool,
}

/// Limit on the descriptors that are sent with a launch spec: those of control groups and a standard input.
pub(crate) const MAX_DESCRIPTORS: usize = 5;

/// One mount of a command's root file system. Paths are absolute, and those of the host are real paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MountStep {
    /// Shows `from` of the host at `to`.
    Bind {
        from: PathBuf,
        to: PathBuf,
        write: bool,
    },
    /// An empty writable directory in memory, of `size` bytes.
    Private {
        at: PathBuf,
        size: u64,
    },
    Link {
        at: PathBuf,
        target: PathBuf,
    },
    /// Makes a file or directory unreadable.
    Hide {
        at: PathBuf,
    },
    /// `/dev`.
    Devices,
    /// `/proc`.
    Processes,
}

/// A report of the helper, sent as one line of JSON.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HelperReport {
    /// The confinement is complete; the command starts.
    Ready(AppliedConfinement),
    /// The command cannot be run.
    Failed(String),
    /// The command ended with an exit status.
    Code(i32),
    /// The command was killed by a signal.
    Signal(i32),
    /// The command was killed because its processes exceeded the memory limit.
    Memory,
}

/// The confinement that was applied, apart from the isolation method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AppliedConfinement {
    /// Version of Landlock's ABI; `None` if the kernel has no Landlock.
    pub landlock: Option<u32>,
    pub seccomp: bool,
    pub processes: ProcessBound,
    pub memory: MemoryBound,
}

/// How memory is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryBound {
    /// All processes of a command together, by a control group.
    Cgroup,
    /// All processes together, by the first process of the sandbox, which measures them and kills them all.
    Watch,
    /// Each process by a resource limit.
    Rlimit,
}

impl MemoryBound {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cgroup => "cgroup",
            Self::Watch => "watch",
            Self::Rlimit => "rlimit",
        }
    }
}

/// How the number of processes is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessBound {
    /// By the PID namespace of the command, which it cannot escape.
    Namespace,
    /// By a control group, which it cannot escape either.
    Cgroup,
    /// By a resource limit of its user, who must not be root.
    Rlimit,
    Unbounded,
}

impl ProcessBound {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Cgroup => "cgroup",
            Self::Rlimit => "rlimit",
            Self::Unbounded => "none",
        }
    }
}
