//! The disk of a daemon, held shut: the threads that work with files stand still.

use crate::home::Home;
use crate::strace::{Strace, threads};

/// Longer than any test: the first call that a held thread makes takes so long, in microseconds.
const FOR_GOOD: &str = "inject=all:delay_enter=600000000";

/// Every thread that reads or writes files or databases stands still. Dropping it lets them go on.
#[derive(Debug)]
pub struct HeldDisk {
    _strace: Strace,
}

impl HeldDisk {
    /// Holds those of the daemon `pid`; `None` where `strace` may not be used.
    #[must_use]
    pub fn of(home: &Home, pid: u32) -> Option<Self> {
        let of_files = threads(pid).into_iter().filter(|(role, _)| role != "worker").flat_map(|(_, ids)| ids);
        let of_files: Vec<u32> = of_files.collect();
        Strace::attach(home, &of_files, &["-e", FOR_GOOD]).map(|strace| Self { _strace: strace })
    }
}
