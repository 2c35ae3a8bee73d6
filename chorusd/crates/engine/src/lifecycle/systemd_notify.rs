//! Reports to the service manager that started us (`$NOTIFY_SOCKET`) that the daemon is ready, alive, or stopping.
//! Without one, these functions do nothing.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_proto::ErrorKind;
use tokio::time::MissedTickBehavior;

/// Reports that the daemon accepts connections.
pub fn notify_ready(status: &str) {
    notify(&format!("READY=1\nSTATUS={status}\n"));
}

/// Reports that an orderly stop has begun.
pub fn notify_stopping(status: &str) {
    notify(&format!("STOPPING=1\nSTATUS={status}\n"));
}

/// Returns how long the service manager waits for a sign of life; `None` if it expects none.
#[must_use]
pub fn watchdog_timeout() -> Option<Duration> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    // The variables may be meant for the process that started us.
    let ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    number("WATCHDOG_USEC").filter(|limit| ours && *limit > 0).map(Duration::from_micros)
}

/// Sends a sign of life as long as `alive` succeeds. It is called three times within `limit`, so that one slow call
/// does no harm, and a call that never returns lets the service manager end the daemon.
pub async fn run_watchdog<F: Future<Output = Result<()>> + Send>(limit: Duration, alive: impl Fn() -> F + Send) {
    let mut turns = tokio::time::interval(limit / 3);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        match alive().await {
            Ok(()) => notify("WATCHDOG=1\n"),
            Err(failure) if failure.kind == ErrorKind::Stopping => return,
            Err(failure) => tracing::warn!(%failure, "skipping the watchdog ping of the service manager"),
        }
    }
}

fn notify(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else { return };
    // A service manager that does not listen is no reason to stop working.
    if let Err(e) = send_datagram(&socket, state.as_bytes()) {
        tracing::warn!("cannot notify the service manager: {e}");
    }
}

fn send_datagram(socket: &OsStr, message: &[u8]) -> io::Result<()> {
    let datagram = UnixDatagram::unbound()?;
    // A manager that does not read must not block the daemon.
    datagram.set_nonblocking(true)?;
    #[cfg(target_os = "linux")]
    if let Some(name) = socket.as_bytes().strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt as _;
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
        return datagram.send_to_addr(message, &address).map(drop);
    }
    datagram.send_to(message, socket).map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use chorus_base::error::Error;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_does_not_answer_is_not_asked_again() {
        let asked = Arc::new(AtomicU32::new(0));
        let alive = || {
            let nth = asked.fetch_add(1, Ordering::Relaxed);
            async move { if nth < 4 { Ok(()) } else { std::future::pending().await } }
        };
        let limit = Duration::from_secs(30);
        assert!(tokio::time::timeout(limit * 10, run_watchdog(limit, alive)).await.is_err());
        assert_eq!(asked.load(Ordering::Relaxed), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_is_tried_again_and_a_stop_ends_it() {
        let asked = AtomicU32::new(0);
        let alive = || {
            let nth = asked.fetch_add(1, Ordering::Relaxed);
            async move { Err(if nth < 2 { Error::busy() } else { Error::stopping() }) }
        };
        run_watchdog(Duration::from_secs(30), alive).await;
        assert_eq!(asked.load(Ordering::Relaxed), 3);
    }
}
