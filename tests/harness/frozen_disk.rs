//! Freezes the disk of a daemon by stopping the threads that access files.

use crate::home::Home;
use crate::strace::{Strace, threads};

/// Delays the first system call of each thread by 600 s (in microseconds), which is longer than any test.
const INJECT_DELAY: &str = "inject=all:delay_enter=600000000";

/// All threads of a daemon that access files or databases are frozen. Dropping it releases them.
#[derive(Debug)]
pub struct FrozenDisk {
    _strace: Strace,
}

impl FrozenDisk {
    /// Freezes the threads of the daemon `pid`; `None` if `strace` may not be used.
    #[must_use]
    pub fn freeze(home: &Home, pid: u32) -> Option<Self> {
        let of_files = threads(pid).into_iter().filter(|(role, _)| role != "worker").flat_map(|(_, ids)| ids);
        let of_files: Vec<u32> = of_files.collect();
        Strace::attach(home, &of_files, &["-e", INJECT_DELAY]).map(|strace| Self { _strace: strace })
    }
}
