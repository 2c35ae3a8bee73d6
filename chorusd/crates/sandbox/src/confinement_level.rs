//! How far commands can be confined on this machine.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::protocol::{AppliedConfinement, MemoryBound, ProcessBound};

/// The method that isolates a command's view of the file system and of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    Bubblewrap,
    /// Namespaces that the helper creates itself.
    Namespaces,
    /// No isolation: a command sees everything that the daemon's user sees.
    None,
}

impl Isolation {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Namespaces => "namespaces",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The confinement that a probe found to work on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfinementLevel {
    pub isolation: Isolation,
    /// Version of Landlock's ABI.
    pub landlock: Option<u32>,
    pub seccomp: bool,
    pub processes: ProcessBound,
    pub memory: MemoryBound,
    /// Missing protections, worst first.
    pub missing: Vec<MissingProtection>,
}

/// A protection that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingProtection {
    /// The missing protection, and why it is missing.
    pub description: String,
    /// How to get it.
    pub remedy: Option<String>,
}

/// First Landlock ABI that blocks access to abstract sockets outside the sandbox.
const MIN_SCOPES_ABI: u32 = 6;

impl ConfinementLevel {
    /// `failed` lists the methods that did not work, with the reasons.
    pub(super) fn new(isolation: Isolation, reached: AppliedConfinement, failed: &[(Isolation, String)]) -> Self {
        let AppliedConfinement { landlock, seccomp, processes, memory } = reached;
        let mut missing = Vec::new();
        let mut lacks =
            |what: String, mend: Option<String>| missing.push(MissingProtection { description: what, remedy: mend });
        if isolation == Isolation::None {
            let why: Vec<String> = failed.iter().map(|(way, why)| format!("{way}: {why}")).collect();
            lacks(format!("commands see all that you see ({})", why.join("; ")), super::launcher::isolation_remedy());
        }
        match landlock {
            None => {
                lacks("the kernel has no Landlock".into(), Some("use a kernel with Landlock (5.13 or newer)".into()))
            }
            Some(abi) if abi < MIN_SCOPES_ABI => lacks(
                "with network access, commands can reach abstract sockets of other programs".into(),
                Some("use a kernel with Landlock ABI 6 (6.12 or newer)".into()),
            ),
            Some(_) => {}
        }
        if !seccomp {
            lacks("system calls are not filtered".into(), None);
        }
        if processes == ProcessBound::Unbounded {
            let why = if rustix::process::geteuid().is_root() { ": root is not limited" } else { "" };
            lacks(format!("the number of processes is not limited{why}"), Some(process_bound_remedy()));
        }
        if memory == MemoryBound::Rlimit {
            lacks("memory is limited per process, not per command".into(), Some(CGROUP_REMEDY.into()));
        }
        Self { isolation, landlock, seccomp, processes, memory, missing }
    }

    /// Nothing works, not even running a command without isolation.
    pub(super) fn unconfined(failed: &[(Isolation, String)]) -> Self {
        let reached = AppliedConfinement {
            landlock: None,
            seccomp: false,
            processes: ProcessBound::Unbounded,
            memory: MemoryBound::Rlimit,
        };
        Self::new(Isolation::None, reached, failed)
    }
}

/// How to get control groups that bound a command as a whole.
const CGROUP_REMEDY: &str = "run chorusd as a service with its own cgroups: chorusctl daemon install";

fn process_bound_remedy() -> String {
    if rustix::process::geteuid().is_root() {
        "run chorusd as a non-root user, with its own cgroups, or on Linux 6.14 or newer".into()
    } else {
        "use Linux 5.14 or newer".into()
    }
}

impl fmt::Display for ConfinementLevel {
    /// Writes for example `bubblewrap, Landlock 7, seccomp; memory watchdog, process namespace`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.isolation)?;
        if let Some(abi) = self.landlock {
            write!(f, ", Landlock {abi}")?;
        }
        if self.seccomp {
            f.write_str(", seccomp")?;
        }
        let memory = match self.memory {
            MemoryBound::Cgroup => "memory cgroup",
            MemoryBound::Watch => "memory watchdog",
            MemoryBound::Rlimit => "memory limit per process",
        };
        let processes = match self.processes {
            ProcessBound::Namespace => "process namespace",
            ProcessBound::Cgroup => "process cgroup",
            ProcessBound::Rlimit => "process limit per user",
            ProcessBound::Unbounded => "no process limit",
        };
        write!(f, "; {memory}, {processes}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_what_mends_it() {
        let all = AppliedConfinement {
            landlock: Some(7),
            seccomp: true,
            processes: ProcessBound::Namespace,
            memory: MemoryBound::Cgroup,
        };
        let level =
            ConfinementLevel::new(Isolation::Namespaces, all, &[(Isolation::Bubblewrap, "not installed".into())]);
        let shown = "namespaces, Landlock 7, seccomp; memory cgroup, process namespace";
        assert_eq!((level.to_string().as_str(), level.missing.len()), (shown, 0));
        let level = ConfinementLevel::new(Isolation::Bubblewrap, AppliedConfinement { landlock: Some(5), ..all }, &[]);
        assert!(level.missing[0].description.contains("abstract"));
        let level = ConfinementLevel::new(
            Isolation::Bubblewrap,
            AppliedConfinement { memory: MemoryBound::Rlimit, ..all },
            &[],
        );
        assert!(level.missing[0].description.contains("not per command"));
        let level = ConfinementLevel::unconfined(&[
            (Isolation::Bubblewrap, "not installed".into()),
            (Isolation::Namespaces, "EPERM".into()),
        ]);
        assert!(level.missing[0].description.contains("bubblewrap: not installed; namespaces: EPERM"), "{level:?}");
        let shown = "none; memory limit per process, no process limit";
        assert_eq!((level.missing.len(), level.to_string().as_str()), (5, shown));
        let watched = AppliedConfinement { memory: MemoryBound::Watch, ..all };
        let level = ConfinementLevel::new(Isolation::Bubblewrap, watched, &[]);
        assert_eq!(level.to_string(), "bubblewrap, Landlock 7, seccomp; memory watchdog, process namespace");
    }
}
