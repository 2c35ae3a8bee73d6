//! Reports how commands are confined, as the probe has found, and how to add what is missing.

use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_sandbox::{ConfinementLevel, Isolation, MemoryBound, ProcessBound};

use super::{check, check_with};

/// Reports the confinement, then each missing protection. `None` if the probe has failed.
pub(super) fn checks(level: Option<&ConfinementLevel>) -> Vec<Check> {
    let Some(level) = level else {
        let text = "the check failed; until it succeeds, every command needs approval";
        return vec![check_with("sandbox", Verdict::Warn, text, "run it again; see chorusctl daemon logs")];
    };
    let reached = match level.isolation {
        Isolation::None => None,
        way => Some(check("sandbox", Verdict::Ok, format!("commands are isolated by {}", sandbox_maker(way)))),
    };
    let worst = if level.isolation == Isolation::None { Verdict::Warn } else { Verdict::Info };
    let missing = level.missing.iter().enumerate().map(|(place, missing)| {
        let verdict = if place == 0 { worst } else { Verdict::Info };
        let text = match (place, level.isolation) {
            (0, Isolation::None) => format!("none, so every command needs approval: {}", missing.description),
            _ => missing.description.clone(),
        };
        match &missing.remedy {
            Some(mend) => check_with("sandbox", verdict, text, mend.clone()),
            None => check("sandbox", verdict, text),
        }
    });
    let landlock = level.landlock.map_or_else(|| "not available".into(), |abi| format!("ABI {abi}"));
    let seccomp = if level.seccomp { "system calls are filtered" } else { "not available" };
    let processes = match level.processes {
        ProcessBound::Namespace => "limited per command (namespace)",
        ProcessBound::Cgroup => "limited per command (cgroup)",
        ProcessBound::Rlimit => "limited per user (rlimit); root is not limited",
        ProcessBound::Unbounded => "not limited",
    };
    let memory = match level.memory {
        MemoryBound::Cgroup => "limited per command (cgroup)",
        MemoryBound::Watch => "limited per command (watchdog)",
        MemoryBound::Rlimit => "limited per process (rlimit), not per command",
    };
    let parts = [
        ("Landlock", landlock),
        ("seccomp", seccomp.into()),
        ("processes", processes.into()),
        ("memory", memory.into()),
    ];
    let parts = parts.into_iter().map(|(name, text)| check(name, Verdict::Info, text));
    reached.into_iter().chain(missing).chain(parts).collect()
}

fn sandbox_maker(way: Isolation) -> &'static str {
    match way {
        Isolation::Bubblewrap => "bubblewrap",
        _ => "chorusd itself",
    }
}
