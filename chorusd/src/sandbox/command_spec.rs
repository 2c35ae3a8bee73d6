//! What is to run, and within which bounds.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What a command may reach and use.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// Writable, and the working directory. It is seen under its own path.
    pub workspace: PathBuf,
    pub network: bool,
    pub limits: ResourceLimits,
}

/// How much a command may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceLimits {
    /// From its start to its end; `None`: none.
    pub time: Option<Duration>,
    /// Bytes of memory of each of its processes and of all together, and four times what each of its private directories
    /// holds.
    pub memory: u64,
    /// Processes and threads at one time.
    pub processes: u64,
    /// Bytes of each file that it writes.
    pub file: u64,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self { time: Some(Duration::from_secs(120)), memory: 4 << 30, processes: 4096, file: 8 << 30 }
    }
}

/// The environment variables that lower limits: a number of bytes, a number of processes. For tests; they raise none.
const MEMORY_LIMIT_VAR: &str = "CHORUS_SANDBOX_MEMORY";
const PROCESS_LIMIT_VAR: &str = "CHORUS_SANDBOX_PROCESSES";

impl ResourceLimits {
    /// These, or what a test wants instead where that is less.
    #[must_use]
    pub fn lowered_by_env(self) -> Self {
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

/// A command that is to run.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// The program, and what it is given.
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
    /// Its processes used more memory than they may.
    Memory,
}
