//! What the daemon and its program inside tell each other, over the socket that is the latter's standard input. Its end
//! tells either that the other is gone.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Isolation;

/// The argument by which the daemon's program knows that it is inside.
pub const HELPER_FLAG: &str = "--run-inside";
/// What follows it: make namespaces first; only confine.
pub const NAMESPACES_STAGE: &str = "namespaces";
pub const CONFINE_STAGE: &str = "confine";

/// Asks all processes to end (SIGTERM).
pub const TERMINATE: u8 = b'T';

/// The first thing that is said: a length of four bytes, most significant first, and this as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct LaunchSpec {
    pub way: Isolation,
    pub network: bool,
    /// What is seen, in the order in which it is put in place.
    pub steps: Vec<MountStep>,
    /// Where files may be written.
    pub writable: Vec<PathBuf>,
    pub dir: PathBuf,
    pub argv: Vec<OsString>,
    /// All of it.
    pub env: Vec<(OsString, OsString)>,
    /// Bytes.
    pub memory: u64,
    pub processes: u64,
    /// Bytes of one file.
    pub file: u64,
    /// The control groups that are to be joined: what each bounds, in the order of the descriptors that come with this.
    pub groups: Vec<BoundResources>,
}

/// What a control group bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundResources {
    pub memory: bool,
    pub processes: bool,
}

/// A command has at most this many control groups.
pub const MAX_CGROUPS: usize = 4;

/// One thing that is seen inside. Paths are absolute, and those of the machine are real.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountStep {
    /// What is `from` on the machine.
    Bind {
        from: PathBuf,
        to: PathBuf,
        write: bool,
    },
    /// An empty directory in memory, writable.
    Private {
        at: PathBuf,
        size: u64,
    },
    Link {
        at: PathBuf,
        target: PathBuf,
    },
    /// A file or directory that is not to be read.
    Hide {
        at: PathBuf,
    },
    /// `/dev`.
    Devices,
    /// `/proc`.
    Processes,
}

/// What is said back, each as a line of JSON.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelperReport {
    /// Everything is in place; the command starts.
    Ready(AppliedConfinement),
    /// It does not run.
    Failed(String),
    /// The command ended with a status.
    Code(i32),
    /// It was ended by a signal.
    Signal(i32),
    /// It was ended because its processes used more memory than they may.
    Memory,
}

/// What was put in place, apart from the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedConfinement {
    /// The version of Landlock's interface; `None`: there is none.
    pub landlock: Option<u32>,
    pub seccomp: bool,
    pub processes: ProcessBound,
    pub memory: MemoryBound,
}

/// How memory is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryBound {
    /// Of all processes of a command together, by a control group.
    Cgroup,
    /// The same, by the first process of the sandbox, which counts and ends them all.
    Watch,
    /// Of each process, by a resource limit.
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
    /// By the namespace of the command: nobody gets past it.
    Namespace,
    /// By a control group: the same.
    Cgroup,
    /// By a resource limit of its user, who is not root.
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
