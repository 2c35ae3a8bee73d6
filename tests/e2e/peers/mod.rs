//! Connections between nodes, over real TCP and TLS.

mod faults;
mod flood;
mod handshake;
mod openssl;
mod pool;
mod renewal;
mod settings;
mod tunnels;
mod volume;
mod wrong_servers;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use chorus_peers::{
    ClusterCredentials, ClusterSettings, IncomingTunnel, ListenerLimits, LocalNode, Origin, PeerAddress, PeerListener,
    PeerPool, PoolLimits, Refusals, Tunnel,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use chorus_tests::certificates::Authority;

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Files of a cluster's authority and nodes.
struct Certificates {
    dir: TempDir,
    authority: Authority,
}

/// Days from now in which a certificate is valid.
const VALID: Range<i64> = -1..90;

impl Certificates {
    fn create() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let authority = Authority::create(&dir.path().join("authority"), "cluster");
        Ok(Self { dir, authority })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Signs the certificate of a node. Returns the paths of certificate and key.
    fn sign(&self, node: &str, days: Range<i64>) -> (PathBuf, PathBuf) {
        self.sign_names(node, &names_of(node), days)
    }

    /// Signs a certificate with these names.
    fn sign_names(&self, file: &str, names: &str, days: Range<i64>) -> (PathBuf, PathBuf) {
        sign(&self.authority, self.dir.path(), file, names, days)
    }

    /// The settings of a node with a good certificate.
    fn settings(&self, node: &str) -> ClusterSettings {
        let (cert, key) = self.sign(node, VALID);
        ClusterSettings {
            listen: "127.0.0.1:0".to_owned(),
            advertise: "127.0.0.1:7700".to_owned(),
            ca: self.authority.certificate(),
            cert,
            key,
        }
    }

    fn credentials(&self, node: &str) -> Result<Arc<ClusterCredentials>> {
        Ok(Arc::new(ClusterCredentials::load(&self.settings(node), node)?))
    }
}

fn sign(authority: &Authority, dir: &Path, file: &str, names: &str, days: Range<i64>) -> (PathBuf, PathBuf) {
    let [cert, key] = ["crt", "key"].map(|ending| dir.join(format!("{file}.{ending}")));
    let extensions = format!("subjectAltName={names}\nbasicConstraints=critical,CA:FALSE\n");
    authority.sign_extensions(&extensions, days, &cert, &key);
    (cert, key)
}

/// The names that the certificate of a node needs on this machine.
fn names_of(node: &str) -> String {
    format!("IP:127.0.0.1,DNS:localhost,URI:chorus:node:{node}")
}

fn local(node: &str) -> LocalNode {
    LocalNode { id: node.to_owned(), boot: 1, version: "1.0.0".to_owned() }
}

fn owner() -> Origin {
    Origin::Client(Requester::Owner)
}

fn peer_at(node: &str, port: u16) -> PeerAddress {
    PeerAddress { id: node.to_owned(), address: format!("127.0.0.1:{port}") }
}

/// The frames that a node has received, in order, with the origin of each.
type Received = Arc<Mutex<Vec<(Origin, Bytes)>>>;

/// A node that answers each frame with the same frame.
struct EchoNode {
    port: u16,
    received: Received,
    refusals: Refusals,
    stop: CancellationToken,
    drained: tokio::task::JoinHandle<()>,
}

impl EchoNode {
    async fn start(certificates: &Certificates, node: &str) -> Result<Self> {
        Self::start_with(certificates.credentials(node)?, ListenerLimits::default()).await
    }

    async fn start_with(credentials: Arc<ClusterCredentials>, limits: ListenerLimits) -> Result<Self> {
        let (stop, received) = (CancellationToken::new(), Received::default());
        let node = local(credentials.node());
        let mut listener = PeerListener::bind(credentials, node, limits, stop.clone()).await?;
        let port = listener.local_address().port();
        let refusals = listener.refusals();
        let log = received.clone();
        let drained = chorus_runtime::spawn(async move {
            while let Some(incoming) = listener.accept().await {
                chorus_runtime::spawn(echo(incoming, log.clone()));
            }
            listener.drain().await;
        });
        Ok(Self { port, received, refusals, stop, drained })
    }

    fn address(&self, node: &str) -> PeerAddress {
        peer_at(node, self.port)
    }

    fn received(&self) -> Vec<Bytes> {
        self.received.lock().iter().map(|(_, body)| body.clone()).collect()
    }

    /// The reasons for which connections were refused.
    fn reasons(&self) -> Vec<String> {
        self.refusals.list().into_iter().map(|refusal| refusal.reason).collect()
    }
}

/// Answers the frames of a tunnel with themselves.
async fn echo(incoming: IncomingTunnel, log: Received) {
    let IncomingTunnel { mut tunnel, origin } = incoming;
    while let Ok(Some(body)) = tunnel.next().await {
        log.lock().push((origin.clone(), body.clone()));
        if tunnel.send(body).await.is_err() {
            return;
        }
    }
    tunnel.finish().await;
}

/// Sends a frame and waits for the next one.
async fn ask(tunnel: &mut Tunnel, body: &'static [u8]) -> io::Result<Option<Bytes>> {
    tunnel.send(Bytes::from_static(body)).await?;
    tunnel.next().await
}

/// A pool with the usual limits.
fn pool_of(credentials: Arc<ClusterCredentials>) -> PeerPool {
    pool_with(credentials, PoolLimits::default())
}

fn pool_with(credentials: Arc<ClusterCredentials>, limits: PoolLimits) -> PeerPool {
    let node = local(credentials.node());
    PeerPool::new(credentials, node, limits)
}
