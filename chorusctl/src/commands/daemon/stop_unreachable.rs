//! Stops a daemon that holds the lock of the home but cannot be reached by any socket.

use std::path::Path;
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::lock_file::{self, LockHolder};

use crate::app::App;
use crate::connect;
use crate::error::Error;

/// A daemon whose socket was removed listens again within a second.
const REBIND_TIMEOUT: Duration = Duration::from_secs(3);
/// Daemons of earlier releases do not write into the lock file that they are stopping. Stopping takes at most 10 s by
/// default.
const OLD_RELEASE_STOP_TIMEOUT: Duration = Duration::from_secs(12);
/// Interval between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Result of [`stop`].
#[derive(Debug)]
pub(super) enum StopOutcome {
    /// No daemon holds the lock.
    NotRunning,
    /// The daemon can be reached now.
    Reachable(Client),
    /// The daemon with this pid has ended.
    Exited(u32),
}

/// Waits until the daemon that holds the lock can be reached or has ended. If the lock file names a socket but the
/// daemon does not listen on it, sends SIGTERM after the wait.
///
/// # Errors
/// The daemon still runs, or must not be sent a signal.
pub(super) fn stop(app: &App, patience: Duration) -> Result<StopOutcome, Error> {
    let places = app.paths()?;
    let Some((mut holder, is_earlier)) = find_holder(&places.home) else { return Ok(StopOutcome::NotRunning) };
    let begun = Instant::now();
    loop {
        if places.socket_is_explicit && holder.socket.as_ref().is_some_and(|socket| *socket != places.socket) {
            // The lock file names another socket than the command line. A daemon that was asked to use the named socket
            // would have been found there.
            return Ok(StopOutcome::NotRunning);
        }
        let wait = match (is_earlier, holder.pid, &holder.socket) {
            (true, ..) => OLD_RELEASE_STOP_TIMEOUT,
            // The daemon is starting or stopping.
            (false, Some(_), None) => patience,
            (false, ..) => REBIND_TIMEOUT,
        };
        if begun.elapsed() >= wait.min(patience) {
            break;
        }
        std::thread::sleep(POLL_INTERVAL);
        if let Some(client) = connect::connect_if_running(places, &app.global)? {
            return Ok(StopOutcome::Reachable(client));
        }
        match (find_holder(&places.home), holder.pid) {
            (None, None) => return Ok(StopOutcome::NotRunning),
            (None, Some(pid)) => return Ok(StopOutcome::Exited(pid)),
            (Some((now, _)), Some(pid)) if now.pid.is_some_and(|now| now != pid) => {
                return Ok(StopOutcome::Exited(pid));
            }
            // The lock file is missing for a moment, or is being written.
            (Some((now, _)), _) if now.pid.is_none() => {}
            (Some((now, _)), _) => holder = now,
        }
    }
    let stays = || Error::failed(holder.describe(&places.home)).with_hint("chorusctl daemon logs");
    let pid = holder.pid.filter(|_| is_earlier || holder.socket.is_some()).ok_or_else(stays)?;
    terminate(pid, &places.home).map_err(|why| stays().with_detail(&why))?;
    if super::wait_exit::wait_for_exit(pid, &places.socket, patience) {
        Ok(StopOutcome::Exited(pid))
    } else {
        Err(stays())
    }
}

/// Finds the daemon that holds the lock. True: a daemon of an earlier release, which locks only the lock file.
fn find_holder(home: &Path) -> Option<(LockHolder, bool)> {
    if let Some(holder) = lock_file::lock_holder(home) {
        return Some((holder, false));
    }
    let holder = LockHolder::read(home).ok()?;
    let file = home.join(lock_file::LOCK_FILE);
    holder.pid.is_some_and(|pid| has_open_file(pid, &[&file])).then_some((holder, true))
}

/// Returns true if process `pid` has one of the files open. Only the holder of the lock keeps them open for long.
#[cfg(target_os = "linux")]
fn has_open_file(pid: u32, files: &[&Path]) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let identity = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let wanted: Vec<_> = files.iter().filter_map(|path| identity(path)).collect();
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.flatten().any(|entry| identity(&entry.path()).is_some_and(|found| wanted.contains(&found)))
}

#[cfg(not(target_os = "linux"))]
fn has_open_file(_: u32, _: &[&Path]) -> bool {
    false
}

/// Sends SIGTERM to `pid` if that process holds the lock of `home`. Succeeds if the process has already ended.
#[cfg(target_os = "linux")]
fn terminate(pid: u32, home: &Path) -> Result<(), String> {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("its pid is not valid")?;
    // Open the pidfd before the check, so that the process that is checked is the one that gets the signal.
    let handle = match pidfd_open(number, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(error) => return Err(format!("cannot open process {pid}: {error}")),
    };
    if !has_open_file(pid, &[home, &home.join(lock_file::LOCK_FILE)]) {
        return Err(format!("cannot confirm that process {pid} holds the lock"));
    }
    match pidfd_send_signal(&handle, Signal::TERM) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(format!("cannot send a signal to process {pid}: {error}")),
    }
}

#[cfg(not(target_os = "linux"))]
fn terminate(pid: u32, _: &Path) -> Result<(), String> {
    Err(format!("to stop it: kill {pid}"))
}
