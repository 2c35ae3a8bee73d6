//! The disk of a daemon, held shut: the threads that work with files stand still.

use crate::home::Home;
use crate::strace::{Strace, threads};

/// Longer than any test: the first call that a held thread makes takes so long, in microseconds.
const INJECT_DELAY: &str = "inject=all:delay_enter=600000000";

/// Every thread that reads or writes files or databases stands still. Dropping it lets them go on.
#[derive(Debug)]
pub struct FrozenDisk {
    _strace: Strace,
}

impl FrozenDisk {
    /// Holds those of the daemon `pid`; `None` where `strace` may not be used.
    #[must_use]
    pub fn freeze(home: &Home, pid: u32) -> Option<Self> {
        let of_files = threads(pid).into_iter().filter(|(role, _)| role != "worker").flat_map(|(_, ids)| ids);
        let of_files: Vec<u32> = of_files.collect();
        Strace::attach(home, &of_files, &["-e", INJECT_DELAY]).map(|strace| Self { _strace: strace })
    }
}
