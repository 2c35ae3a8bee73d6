//! The port of a node.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_runtime::SpawnTracked as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::credentials::ClusterCredentials;
use crate::incoming::{Incoming, serve};
use crate::limits::ListenerLimits;
use crate::node::{LocalNode, Origin};
use crate::pending_handshakes::PendingHandshakes;
use crate::refusals::Refusals;
use crate::tunnel::Tunnel;

/// Pause after a failed accept, for example because no descriptor was free.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Limit of tunnels that nobody has taken from [`PeerListener::accept`] yet.
const MAX_UNACCEPTED: usize = 16;

/// Accepts tunnels of other nodes.
#[derive(Debug)]
pub struct PeerListener {
    address: SocketAddr,
    tunnels: mpsc::Receiver<IncomingTunnel>,
    refusals: Refusals,
    connections: TaskTracker,
}

/// A tunnel of another node. Requests of it are never forwarded again.
#[derive(Debug)]
pub struct IncomingTunnel {
    pub tunnel: Tunnel,
    /// The node, and the requester that it vouches for: [`Origin::Peer`].
    pub origin: Origin,
}

impl PeerListener {
    /// Binds the address of the settings, and accepts connections until `stop` is cancelled.
    ///
    /// # Errors
    /// `invalid_config` if the address cannot be bound.
    pub async fn bind(
        credentials: Arc<ClusterCredentials>,
        node: LocalNode,
        limits: ListenerLimits,
        stop: CancellationToken,
    ) -> Result<Self> {
        let listen = &credentials.settings().listen;
        let failed = |e: io::Error| {
            Error::new(ErrorKind::InvalidConfig, format!("cannot listen on {listen}: {e}"))
                .hint("check `listen` of [cluster], and that no other program uses the port")
        };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (to_accept, tunnels) = mpsc::channel(MAX_UNACCEPTED);
        let (refusals, connections) = (Refusals::default(), TaskTracker::new());
        let incoming = Incoming {
            permits: Arc::new(Semaphore::new(limits.max_connections)),
            pending: PendingHandshakes::new(limits.max_handshakes),
            refusals: refusals.clone(),
            credentials,
            node,
            limits,
            to_accept,
            stop,
        };
        chorus_runtime::spawn(accept_connections(listener, Arc::new(incoming), connections.clone()));
        Ok(Self { address, tunnels, refusals, connections })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the next tunnel. `None` once the listener has stopped. May be dropped and called again.
    pub async fn accept(&mut self) -> Option<IncomingTunnel> {
        self.tunnels.recv().await
    }

    /// Returns the connections that it has refused, for `status` and `doctor`.
    #[must_use]
    pub fn refusals(&self) -> Refusals {
        self.refusals.clone()
    }

    /// Waits until every connection has ended: a stopped listener ends those without a tunnel, and the others when their
    /// tunnel ends.
    pub async fn drain(&self) {
        self.connections.close();
        self.connections.wait().await;
    }
}

async fn accept_connections(listener: TcpListener, incoming: Arc<Incoming>, connections: TaskTracker) {
    loop {
        let accepted = tokio::select! {
            () = incoming.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => spawn_connection(stream, address, &incoming, &connections),
            Err(e) => {
                tracing::warn!("cannot accept a connection of another node: {e}");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

fn spawn_connection(stream: TcpStream, address: SocketAddr, incoming: &Arc<Incoming>, connections: &TaskTracker) {
    let handshake = incoming.pending.add();
    let incoming = incoming.clone();
    connections.spawn_tracked(async move { serve(&incoming, stream, address.ip().to_canonical(), handshake).await });
}
