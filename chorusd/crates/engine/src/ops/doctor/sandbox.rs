//! Reports how commands are confined, as the probe has found, and how to add what is missing.

use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_sandbox::{ConfinementLevel, Isolation, MemoryBound, ProcessBound};

use super::{check, check_with};

/// Reports the confinement, then each missing protection. `None` if the probe has failed.
pub(super) fn checks(level: Option<&ConfinementLevel>) -> Vec<Check> {
    let Some(level) = level else {
        let text = "it cannot be found out now; until it is, every command is asked about";
        return vec![check_with("sandbox", Verdict::Warn, text, "ask again; the daemon's log says what is short")];
    };
    let reached = match level.isolation {
        Isolation::None => None,
        way => Some(check("sandbox", Verdict::Ok, format!("commands run in one, made by {}", sandbox_maker(way)))),
    };
    let worst = if level.isolation == Isolation::None { Verdict::Warn } else { Verdict::Info };
    let missing = level.missing.iter().enumerate().map(|(place, missing)| {
        let verdict = if place == 0 { worst } else { Verdict::Info };
        let text = match (place, level.isolation) {
            (0, Isolation::None) => format!("none, so every command is asked about: {}", missing.description),
            _ => missing.description.clone(),
        };
        match &missing.remedy {
            Some(mend) => check_with("sandbox", verdict, text, mend.clone()),
            None => check("sandbox", verdict, text),
        }
    });
    let landlock = level.landlock.map_or_else(|| "not there".into(), |abi| format!("ABI {abi}"));
    let seccomp = if level.seccomp { "system calls are filtered" } else { "not there" };
    let processes = match level.processes {
        ProcessBound::Namespace => "bounded for each command, by its namespace",
        ProcessBound::Cgroup => "bounded for each command, by a control group",
        ProcessBound::Rlimit => "bounded by a limit of the user (rlimit), which does not bind root",
        ProcessBound::Unbounded => "not bounded",
    };
    let memory = match level.memory {
        MemoryBound::Cgroup => "bounded for each command, by a control group",
        MemoryBound::Watch => "bounded for each command, whose processes are watched",
        MemoryBound::Rlimit => "bounded for each process (rlimit), not for a command as a whole",
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
