//! Connections to other nodes: new ones, and those that had a tunnel and may have another.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use chorus_base::sync::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::credentials::{ClusterCredentials, TlsConfigs};
use crate::dial::dial;
use crate::errors::{ConnectError, ConnectErrorKind};
use crate::hello::{Control, encode};
use crate::idle::{Claim, keep};
use crate::limits::PoolLimits;
use crate::node::{LocalNode, Origin, PeerAddress};
use crate::transport::Connection;
use crate::tunnel::Tunnel;

/// Connections to other nodes. Each tunnel has one to itself. When the pool is dropped, all of them end.
#[derive(Debug)]
pub struct PeerPool {
    shared: Arc<Shared>,
    _end: DropGuard,
}

#[derive(Debug)]
struct Shared {
    credentials: Arc<ClusterCredentials>,
    local: LocalNode,
    limits: PoolLimits,
    nodes: Mutex<HashMap<String, Node>>,
    next_number: AtomicU64,
    end: CancellationToken,
}

#[derive(Debug)]
struct Node {
    /// Ends all connections to the node.
    cut: CancellationToken,
    idle: Vec<Idle>,
}

/// A connection without a tunnel, which a task keeps.
#[derive(Debug)]
struct Idle {
    number: u64,
    made: Made,
    claims: oneshot::Sender<Claim>,
}

/// How and when a connection was made.
#[derive(Debug, Clone)]
struct Made {
    address: String,
    generation: u64,
    at: Instant,
    cut: CancellationToken,
}

impl PeerPool {
    /// Creates a pool for this node. Connects when a tunnel is needed.
    #[must_use]
    pub fn new(credentials: Arc<ClusterCredentials>, local: LocalNode, limits: PoolLimits) -> Self {
        let end = CancellationToken::new();
        let guard = end.clone().drop_guard();
        let (nodes, next_number) = (Mutex::default(), AtomicU64::new(0));
        Self { shared: Arc::new(Shared { credentials, local, limits, nodes, next_number, end }), _end: guard }
    }

    /// Opens a tunnel to a node for a client's connection, over a pooled connection or a new one. Sends nothing over a pooled one:
    /// the opening leaves with the first frame.
    ///
    /// # Errors
    /// [`ConnectError`]; no request has left this node. `Forbidden` if the client is itself a peer, whose requests are never
    /// forwarded again, or if the node is this one.
    pub async fn connect(&self, target: &PeerAddress, origin: &Origin) -> Result<Tunnel, ConnectError> {
        let forbidden = |what: &str| ConnectError::new(ConnectErrorKind::Forbidden, target, what);
        let Origin::Client(requester) = origin else {
            return Err(forbidden("requests of another node are not forwarded again"));
        };
        if target.id == self.shared.local.id {
            return Err(forbidden("it is this node"));
        }
        let open = encode(&Control::Open { requester: requester.clone() }).map_err(|e| forbidden(&e.to_string()))?;
        let configs = self.shared.credentials.current().await;
        while let Some(idle) = self.shared.take_idle(target, configs.generation) {
            let (claim, claimed) = oneshot::channel();
            if idle.claims.send(claim).is_ok()
                && let Ok(connection) = claimed.await
            {
                return Ok(self.shared.clone().open(connection, open, idle.made));
            }
        }
        let (connection, made) = self.shared.connect_anew(target, &configs).await?;
        Ok(self.shared.clone().open(connection, open, made))
    }

    /// Makes a new connection to a node, also if there is a pooled one, and keeps it for a tunnel. It shows that each side trusts the
    /// certificate of the other now.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn probe(&self, target: &PeerAddress) -> Result<(), ConnectError> {
        if target.id == self.shared.local.id {
            return Err(ConnectError::new(ConnectErrorKind::Forbidden, target, "it is this node"));
        }
        let configs = self.shared.credentials.current().await;
        let (connection, made) = self.shared.connect_anew(target, &configs).await?;
        let shared = self.shared.clone();
        chorus_runtime::spawn(async move { shared.keep(connection, made).await });
        Ok(())
    }

    /// Ends all connections to a node now, also those with a tunnel: whoever waits there gets an error. For a node that is known
    /// to be gone, which a connection alone notices late.
    pub fn disconnect(&self, node: &str) {
        let gone = self.shared.nodes.lock().remove(node);
        if let Some(gone) = gone {
            gone.cut.cancel();
        }
    }

    /// The number of connections to a node that have no tunnel.
    #[must_use]
    pub fn idle(&self, node: &str) -> usize {
        self.shared.nodes.lock().get(node).map_or(0, |node| node.idle.len())
    }
}

impl Shared {
    /// Connects to a node, within the time for that.
    async fn connect_anew(
        &self,
        target: &PeerAddress,
        configs: &TlsConfigs,
    ) -> Result<(Connection, Made), ConnectError> {
        let cut = self.node_cut(&target.id);
        let dialed = dial(target, &self.local, configs, self.limits, &cut);
        let dialed = tokio::select! {
            () = cut.cancelled() => return Err(ConnectError::timed_out(target)),
            dialed = timeout(self.limits.connect_timeout, dialed) => dialed,
        };
        let connection = dialed.map_err(|_| ConnectError::timed_out(target))??;
        let made = Made { address: target.address.clone(), generation: configs.generation, at: Instant::now(), cut };
        Ok((connection, made))
    }

    /// Removes the newest connection that may have another tunnel. Those that may not end.
    fn take_idle(&self, target: &PeerAddress, generation: u64) -> Option<Idle> {
        let mut nodes = self.nodes.lock();
        let idle = &mut nodes.get_mut(&target.id)?.idle;
        idle.retain(|idle| idle.made.is_usable(target, generation, self.limits));
        idle.pop()
    }

    /// The token that ends the connections to a node.
    fn node_cut(&self, node: &str) -> CancellationToken {
        let mut nodes = self.nodes.lock();
        let new = || Node { cut: self.end.child_token(), idle: Vec::new() };
        nodes.entry(node.to_owned()).or_insert_with(new).cut.clone()
    }

    /// Opens a tunnel, and takes the connection back after it.
    fn open(self: Arc<Self>, mut connection: Connection, open: Bytes, made: Made) -> Tunnel {
        connection.reader.begin_tunnel();
        connection.writer.begin_tunnel(open);
        let (return_to, returned) = oneshot::channel();
        chorus_runtime::spawn(async move {
            if let Ok(connection) = returned.await {
                self.keep(connection, made).await;
            }
        });
        Tunnel::new(connection, return_to)
    }

    /// Keeps a connection for the next tunnel, if there is space for it.
    async fn keep(&self, connection: Connection, made: Made) {
        let (id, generation) = (connection.peer.id.clone(), self.credentials.generation());
        let target = PeerAddress { id: id.clone(), address: made.address.clone() };
        if !made.is_usable(&target, generation, self.limits) {
            return;
        }
        let (claims, claimed) = oneshot::channel();
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        {
            let mut nodes = self.nodes.lock();
            let Some(node) = nodes.get_mut(&id).filter(|node| node.idle.len() < self.limits.max_idle) else { return };
            node.idle.push(Idle { number, made, claims });
        }
        keep(connection, claimed, self.limits).await;
        if let Some(node) = self.nodes.lock().get_mut(&id) {
            node.idle.retain(|idle| idle.number != number);
        }
    }
}

impl Made {
    /// True if the connection may have a tunnel now: it goes to the right address, its certificates are the current ones,
    /// and it is not too old.
    fn is_usable(&self, target: &PeerAddress, generation: u64, limits: PoolLimits) -> bool {
        self.address == target.address
            && self.generation == generation
            && self.at.elapsed() < limits.max_age
            && !self.cut.is_cancelled()
    }
}
