//! Accepts connections from the daemon's own user and root only, up to a limit.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chorus_base::error::Error;
use chorus_engine::lifecycle::malloc_trim;
use chorus_engine::lifecycle::socket::{BoundSocket, SocketFile};
use chorus_engine::ops::Ops;
use chorus_proto::{ErrorKind, RpcError};
use chorus_runtime::SpawnTracked as _;
use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::StreamCommon as _;
use interprocess::local_socket::traits::tokio::Listener as _;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::serve;
use super::elsewhere::Elsewhere;
use super::frame_budget::FrameBudget;
use super::reply;

/// The listening socket and its connections.
#[derive(Debug)]
pub struct Server {
    pub(super) ops: Arc<Ops>,
    pub(super) connections: TaskTracker,
    pub(super) stop: CancellationToken,
    elsewhere: Elsewhere,
}

/// Pause after a failed accept, for example because no descriptor was free.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The number of connections from which on freed memory is returned to the system when half of them close.
const TRIM_MIN_CONNECTIONS: u64 = 256;

impl Server {
    /// Creates a server for `ops` that ends when `stop` is cancelled. Requests for agents that other nodes have are sent there,
    /// as `elsewhere` says.
    #[must_use]
    pub fn new(ops: Arc<Ops>, stop: CancellationToken, elsewhere: Elsewhere) -> Self {
        Self { ops, connections: TaskTracker::new(), stop, elsewhere }
    }

    /// Accepts connections until `stop` is cancelled; [`Server::drain`] then waits for them to end. A socket received
    /// by `moved` replaces the current one.
    pub async fn accept(
        &self,
        (mut listener, mut file): (Listener, SocketFile),
        mut moved: mpsc::Receiver<BoundSocket>,
    ) {
        let permits = Arc::new(Semaphore::new(self.ops.config.max_connections));
        let room = FrameBudget::new(self.ops.config.max_frame);
        let most = Arc::new(AtomicU64::new(0));
        let mut next = 0_u64;
        loop {
            let stream = tokio::select! {
                () = self.stop.cancelled() => break,
                Some(bound) = moved.recv() => {
                    match bound.listen() {
                        Ok(now) => (listener, file) = now,
                        Err(failure) => tracing::error!(%failure, "the daemon is unreachable"),
                    }
                    continue;
                }
                accepted = listener.accept() => match accepted {
                    Ok(stream) => stream,
                    Err(e) => {
                        tracing::warn!("cannot accept a connection: {e}");
                        tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                        continue;
                    }
                },
            };
            next += 1;
            if let Err(failure) = check_peer(&stream) {
                tracing::warn!(%failure, "refused a connection");
                self.connections.spawn_tracked(refuse_connection(stream, failure));
                continue;
            }
            let Ok(permit) = permits.clone().try_acquire_owned() else {
                let failure =
                    Error::new(ErrorKind::Busy, "too many connections").hint("close some, or raise max_connections");
                self.connections.spawn_tracked(refuse_connection(stream, failure));
                continue;
            };
            let (ops, room, stop, most) = (self.ops.clone(), room.clone(), self.stop.clone(), most.clone());
            let elsewhere = self.elsewhere.clone();
            self.connections.spawn_tracked(async move {
                most.fetch_max(ops.daemon.connections.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                let Stream::UdSocket(socket) = stream;
                serve(OwnedFd::try_from(socket), ops.clone(), (next, elsewhere), room, stop).await;
                let left = ops.daemon.connections.fetch_sub(1, Ordering::Relaxed) - 1;
                drop(permit);
                if has_half_closed(left, &most) {
                    malloc_trim::schedule_trim(&ops.store);
                }
            });
        }
        // In this order, so that a client that still sees the file is refused instead of waiting.
        drop(listener);
        drop(file);
    }

    /// Waits until every connection has received its last reply and ended.
    pub async fn drain(&self) {
        self.connections.close();
        self.connections.wait().await;
    }
}

/// Returns true if half of many connections have closed since it last returned true. `most` is the highest number of
/// connections since then.
fn has_half_closed(left: u64, most: &AtomicU64) -> bool {
    let before = most.load(Ordering::Relaxed);
    before >= TRIM_MIN_CONNECTIONS
        && left <= before / 2
        && most.compare_exchange(before, left, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// Authority comes from the kernel, never from what a request says.
fn check_peer(stream: &Stream) -> Result<(), Error> {
    let denied = |why: String| {
        Error::new(ErrorKind::Denied, why).hint("only root and the user that runs the daemon can connect")
    };
    let peer = stream.peer_creds().map_err(|e| denied(format!("cannot identify the client: {e}")))?;
    match peer.euid() {
        Some(0) => Ok(()),
        Some(uid) if uid == rustix::process::geteuid().as_raw() => Ok(()),
        Some(uid) => Err(denied(format!("user {uid} is not allowed to connect"))),
        None => Err(denied("cannot identify the client".into())),
    }
}

/// Sends the error, and closes the connection.
async fn refuse_connection(mut stream: Stream, failure: Error) {
    let error: RpcError = reply::to_rpc_error(&failure);
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(&reply::error_frame(None, &error))).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_back_each_time_that_half_of_many_have_gone() {
        let most = AtomicU64::new(19_000);
        let given: Vec<u64> = (0..19_000).rev().filter(|left| has_half_closed(*left, &most)).collect();
        assert_eq!(given, [9500, 4750, 2375, 1187, 593, 296, 148]);
        assert!(!has_half_closed(0, &AtomicU64::new(255)));
    }
}
