//! Who continues this process when it is stopped, and whether the terminal is its own. Groups and sessions are read from /proc: those of a
//! process that came into a container from outside have no number there, which a [`rustix::process::Pid`] cannot say.

use std::{fs, io};

use rustix::process::getppid;
use rustix::termios::tcgetpgrp;

/// The fields of proc_pid_stat(5) that tell how a process is controlled. A number is 0 outside of the namespace of processes.
struct ProcessStat {
    parent: i32,
    group: i32,
    session: i32,
}

impl ProcessStat {
    /// Reads that of a process, given as its number or `self`; `None` if it cannot be found out.
    fn read(process: impl std::fmt::Display) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name of the program, in parentheses, may have any characters; the state follows.
        let mut fields =
            stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(1).map_while(|field| field.parse().ok());
        Some(Self { parent: fields.next()?, group: fields.next()?, session: fields.next()? })
    }
}

/// Returns false if nobody would continue the process group: there is no shell of the same session that controls it. That is so if it
/// is started by ssh or by a terminal emulator, or from outside of the namespace. True if it cannot be found out.
pub(super) fn is_continuable() -> bool {
    let Some(own) = ProcessStat::read("self") else { return true };
    let Some(parent) = getppid().and_then(|parent| ProcessStat::read(parent.as_raw_nonzero())) else { return false };
    if parent.group != own.group {
        return parent.session == own.session;
    }
    // A script, whose group it is.
    let Some(leader) = ProcessStat::read(own.group) else { return true };
    ProcessStat::read(leader.parent).is_some_and(|shell| shell.session == own.session)
}

/// Returns true if the process group is in the foreground of the terminal on standard input.
#[must_use]
pub fn is_in_foreground() -> bool {
    let group = ProcessStat::read("self").map(|own| own.group);
    match tcgetpgrp(io::stdin()) {
        Ok(foreground) => group == Some(foreground.as_raw_nonzero().get()),
        // The group in the foreground came from outside of the namespace.
        Err(rustix::io::Errno::OPNOTSUPP) => group == Some(0),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_read_past_any_name() {
        for name in ["chorusctl", "a) R 7 8 9", "tmux: server", ""] {
            let stat = ProcessStat::parse(&format!("12 ({name}) S 3 0 5 34816 12")).expect("fields");
            assert_eq!((stat.parent, stat.group, stat.session), (3, 0, 5), "{name}");
        }
        for wrong in ["", "12 (x", "12 (x) S 1 2", "12 (x) S a b c"] {
            assert!(ProcessStat::parse(wrong).is_none(), "{wrong}");
        }
    }
}
