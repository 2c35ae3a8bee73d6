//! How far commands are confined on this machine.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::wire::{Memory, Processes, Reached};

/// What makes the view that a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    Bubblewrap,
    /// Namespaces of our own.
    Namespaces,
    /// Nothing: a command sees what the daemon's user sees.
    None,
}

impl Way {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Namespaces => "namespaces",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What was reached, found out by running a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    pub way: Way,
    /// The version of Landlock's interface.
    pub landlock: Option<u32>,
    pub seccomp: bool,
    pub processes: Processes,
    pub memory: Memory,
    /// What is not there, worst first.
    pub missing: Vec<Missing>,
}

/// Something that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What, and why.
    pub what: String,
    /// What would mend it.
    pub mend: Option<String>,
}

/// From this version on Landlock keeps abstract sockets of others out of reach.
const SCOPES: u32 = 6;

impl Level {
    /// `failed`: the ways that did not work, and why.
    pub(super) fn new(way: Way, reached: Reached, failed: &[(Way, String)]) -> Self {
        let Reached { landlock, seccomp, processes, memory } = reached;
        let mut missing = Vec::new();
        let mut lacks = |what: String, mend: Option<String>| missing.push(Missing { what, mend });
        if way == Way::None {
            let why: Vec<String> = failed.iter().map(|(way, why)| format!("{way}: {why}")).collect();
            lacks(format!("commands see all that you see ({})", why.join("; ")), super::machine::mend());
        }
        match landlock {
            None => lacks("the kernel has no Landlock".into(), Some("a kernel with Landlock (5.13 or newer)".into())),
            Some(abi) if abi < SCOPES => lacks(
                "with the network, abstract sockets of other programs can be reached".into(),
                Some("a kernel with Landlock ABI 6 (6.12 or newer)".into()),
            ),
            Some(_) => {}
        }
        if !seccomp {
            lacks("system calls are not filtered".into(), None);
        }
        if processes == Processes::Unbounded {
            let why = if rustix::process::geteuid().is_root() { ": limits do not bind root" } else { "" };
            lacks(format!("the number of processes is not bounded{why}"), Some(unbounded()));
        }
        if memory == Memory::Rlimit {
            lacks("memory is bounded for each process, not for a command as a whole".into(), Some(GROUPS.into()));
        }
        Self { way, landlock, seccomp, processes, memory, missing }
    }

    /// Where nothing can be found out.
    pub(super) fn nothing(failed: &[(Way, String)]) -> Self {
        let reached =
            Reached { landlock: None, seccomp: false, processes: Processes::Unbounded, memory: Memory::Rlimit };
        Self::new(Way::None, reached, failed)
    }
}

/// What lets a command be bounded as a whole.
const GROUPS: &str =
    "run chorusd as a service that has control groups of its own, as `chorusctl daemon install` writes it";

fn unbounded() -> String {
    if rustix::process::geteuid().is_root() {
        "run chorusd as a user that is not root, with control groups of its own, or on Linux 6.14 or newer".into()
    } else {
        "Linux 5.14 or newer".into()
    }
}

impl fmt::Display for Level {
    /// `bubblewrap, Landlock 7, seccomp, memory by cgroup, processes by namespace`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.way)?;
        if let Some(abi) = self.landlock {
            write!(f, ", Landlock {abi}")?;
        }
        if self.seccomp {
            f.write_str(", seccomp")?;
        }
        write!(f, ", memory by {}, processes by {}", self.memory.as_str(), self.processes.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_what_mends_it() {
        let all = Reached { landlock: Some(7), seccomp: true, processes: Processes::Namespace, memory: Memory::Cgroup };
        let level = Level::new(Way::Namespaces, all, &[(Way::Bubblewrap, "not installed".into())]);
        let shown = "namespaces, Landlock 7, seccomp, memory by cgroup, processes by namespace";
        assert_eq!((level.to_string().as_str(), level.missing.len()), (shown, 0));
        let level = Level::new(Way::Bubblewrap, Reached { landlock: Some(5), ..all }, &[]);
        assert!(level.missing[0].what.contains("abstract"));
        let level = Level::new(Way::Bubblewrap, Reached { memory: Memory::Rlimit, ..all }, &[]);
        assert!(level.missing[0].what.contains("not for a command as a whole"));
        let level = Level::nothing(&[(Way::Bubblewrap, "not installed".into()), (Way::Namespaces, "EPERM".into())]);
        assert!(level.missing[0].what.contains("bubblewrap: not installed; namespaces: EPERM"), "{level:?}");
        assert_eq!((level.missing.len(), level.to_string().as_str()), (5, "none, memory by rlimit, processes by none"));
    }
}
