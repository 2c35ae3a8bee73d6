//! Waits for the exit of a process that is not our child.

use std::path::Path;
use std::time::{Duration, Instant};

use chorus_proto::Client;

/// Waits until the daemon `pid` has ended. Returns false if it has not within `patience`.
pub fn wait_for_exit(pid: u32, socket: &Path, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    if let Some(ended) = wait_on_pidfd(pid, patience) {
        return ended;
    }
    // Without a pidfd, watch the socket instead.
    while Client::connect(socket).is_ok() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Waits on a pidfd; `None` if the system has none.
#[cfg(target_os = "linux")]
fn wait_on_pidfd(pid: u32, patience: Duration) -> Option<bool> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Some(true),
        Err(_) => return None,
    };
    let mut waiting = [PollFd::new(&handle, PollFlags::IN)];
    match poll(&mut waiting, Some(&crate::connect::to_timespec(patience))) {
        Ok(ended) => Some(ended > 0),
        Err(_) => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn wait_on_pidfd(_: u32, _: Duration) -> Option<bool> {
    None
}
