//! Identifies processes across reuse of their ids, by start time and boot id.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Interval for checking whether a process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Returns the id of this boot of the machine; empty if it is not available.
#[must_use]
pub(super) fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// Returns when a process started, in clock ticks since boot; `None` if it does not exist or has ended.
#[must_use]
pub(super) fn start_time(pid: u32) -> Option<u64> {
    parse_start_time(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, false)
}

/// Like [`start_time`], but also answers for a child that has ended and was not waited for.
#[must_use]
pub(super) fn child_start_time(pid: u32) -> Option<u64> {
    parse_start_time(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, true)
}

/// Parses the start time in proc_pid_stat(5): the state is the 3rd field, the start time the 22nd; the 2nd may contain
/// anything and ends with `)`.
fn parse_start_time(stat: &str, also_ended: bool) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    if !also_ended && matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Returns true if a process leads a group: the group is the 5th field of proc_pid_stat(5), 0 outside of the namespace of processes.
fn leads_group(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let group = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_ascii_whitespace().nth(2));
    group.and_then(|group| group.parse().ok()) == Some(pid)
}

/// A process as recorded when it was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessIdentity {
    pub pid: u32,
    pub start_time: u64,
    pub boot_id: String,
}

impl ProcessIdentity {
    /// Returns true if this very process is still running.
    #[must_use]
    pub(super) fn is_running(&self) -> bool {
        !self.boot_id.is_empty() && self.boot_id == boot_id() && start_time(self.pid) == Some(self.start_time)
    }

    /// Ends the process, and its group if it leads one: sends SIGTERM, and SIGKILL after `grace`.
    pub(super) async fn terminate(&self, grace: Duration) {
        self.signal(Signal::TERM);
        let mut waited = Duration::ZERO;
        while self.is_running() && waited < grace {
            tokio::time::sleep(POLL_INTERVAL).await;
            waited += POLL_INTERVAL;
        }
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw);
        let Some(pid) = pid.filter(|_| self.is_running()) else { return };
        let sent = if leads_group(self.pid) { kill_process_group(pid, signal) } else { kill_process(pid, signal) };
        if let Err(e) = sent {
            tracing::warn!(pid = self.pid, "cannot stop a leftover process: {e}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_process_is_read_past_any_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
        for name in ["sleep", "a) R 1 1", "tmux: server", ""] {
            assert_eq!(parse_start_time(&format!("12 ({name}) {rest}"), false), Some(4711), "{name}");
        }
        let ended = format!("12 (x) {}", rest.replace('S', "Z"));
        assert_eq!((parse_start_time(&ended, false), parse_start_time(&ended, true)), (None, Some(4711)));
        for wrong in ["", "12 (x", "12 (x) S 1", "12 (x) S a b"] {
            assert_eq!(parse_start_time(wrong, false), None, "{wrong}");
        }
    }

    #[test]
    fn another_process_of_the_same_number_is_not_taken_for_it() {
        let pid = std::process::id();
        let started = start_time(pid).expect("this process");
        for (noted, same) in [
            (ProcessIdentity { pid, start_time: started, boot_id: boot_id() }, true),
            (ProcessIdentity { pid, start_time: started + 1, boot_id: boot_id() }, false),
            (ProcessIdentity { pid, start_time: started, boot_id: "another".into() }, false),
            (ProcessIdentity { pid, start_time: started, boot_id: String::new() }, false),
            (ProcessIdentity { pid: u32::MAX, start_time: started, boot_id: boot_id() }, false),
        ] {
            assert_eq!(noted.is_running(), same, "{noted:?}");
        }
    }
}
