//! Who continues this process when it is stopped.

use std::fs;

use rustix::process::{Pid, getpgid, getpgrp, getppid, getsid};

/// Returns false if nobody would continue the process group: there is no shell of the same session that controls it. That is so if it
/// is started by ssh or by a terminal emulator. True if it cannot be found out.
pub(super) fn is_continuable() -> bool {
    let (group, Ok(session)) = (getpgrp(), getsid(None)) else { return true };
    let is_member = |process: Pid| getpgid(Some(process)).is_ok_and(|of| of == group);
    let parent = match getppid() {
        // A script, whose group it is.
        Some(parent) if is_member(parent) => match parent_of(group) {
            None => return true,
            of_script => of_script,
        },
        parent => parent,
    };
    parent.is_some_and(|parent| getsid(Some(parent)).is_ok_and(|of| of == session))
}

/// Returns the parent of a process; `None` if it cannot be found out.
fn parent_of(process: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The name of the program, in parentheses, may have any characters.
    let (_, fields) = stat.rsplit_once(')')?;
    Pid::from_raw(fields.split_whitespace().nth(1)?.parse().ok()?)
}
