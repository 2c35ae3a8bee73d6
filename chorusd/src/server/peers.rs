//! Requests that nodes of a cluster carry out for each other's clients: sends them to other nodes, and serves those of others.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use chorus_base::error;
use chorus_base::requester::Requester;
use chorus_peers::{IncomingTunnel, PeerListener, PeerPool, Tunnel};
use chorus_proto::ErrorKind;
use chorus_proto::frame::encode_header;
use chorus_proto::frame_codec::FrameCodec;
use chorus_proto::methods::{
    Method as _, agent_transfer, backup, capture, cluster, config, daemon, search, settings, trash,
};
use chorus_runtime::SpawnTracked as _;
use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio_util::codec::Decoder as _;
use tokio_util::sync::CancellationToken;

use super::connection::serve;
use super::dispatch::ToClient;
use super::dispatch::request_check::find_id;
use super::elsewhere::{Asked, Elsewhere, Forward, ForwardOfClient};
use super::frame_budget::FrameBudget;
use super::reply::{Frame, error_frame, to_rpc_error};
use super::{Server, link_task, links};

/// The first number of connections of other nodes; those of the socket count from 1.
const FIRST_PEER_CONNECTION: u64 = 1 << 48;

/// Methods that concern a machine and none of its agents, or change it: a node never calls them for its clients, so another one
/// refuses them.
const OF_THE_MACHINE: [&str; 18] = [
    daemon::Stop::NAME,
    config::Reload::NAME,
    config::Set::NAME,
    settings::Set::NAME,
    agent_transfer::ImportBegin::NAME,
    agent_transfer::ImportAdd::NAME,
    agent_transfer::ImportCommit::NAME,
    backup::Create::NAME,
    backup::ArchiveBegin::NAME,
    backup::ArchiveRead::NAME,
    capture::On::NAME,
    capture::Off::NAME,
    capture::Exclude::NAME,
    capture::Pause::NAME,
    capture::Resume::NAME,
    trash::Empty::NAME,
    cluster::Forget::NAME,
    search::Model::NAME,
];

impl Elsewhere {
    /// Requests are sent to the node that has the agent.
    #[must_use]
    pub fn forwarded(pool: Arc<PeerPool>) -> Self {
        Self { way: Some(Arc::new(Forwarding { pool })) }
    }

    /// For clients that are nodes: they learn that the agent has moved, and find out where to.
    fn told() -> Self {
        Self { way: Some(Arc::new(Telling)) }
    }
}

#[derive(Debug)]
struct Forwarding {
    pool: Arc<PeerPool>,
}

impl Forward for Forwarding {
    fn of_client(
        &self,
        to_client: mpsc::Sender<Box<ToClient>>,
        reading_ended: CancellationToken,
    ) -> Arc<dyn ForwardOfClient> {
        Arc::new(links::Links::new(self.pool.clone(), to_client, reading_ended))
    }
}

/// Tells other nodes that an agent is not here.
#[derive(Debug)]
struct Telling;

impl Forward for Telling {
    fn of_client(&self, _: mpsc::Sender<Box<ToClient>>, _: CancellationToken) -> Arc<dyn ForwardOfClient> {
        Arc::new(Self)
    }
}

impl ForwardOfClient for Telling {
    fn ask<'a>(&'a self, _there: error::Elsewhere, body: &'a Bytes, _: Option<Frame>) -> BoxFuture<'a, Asked> {
        let moved = error::Error::new(ErrorKind::Busy, "the agent is not on this node");
        let mut error = to_rpc_error(&moved);
        error.code = link_task::CODE_MOVED;
        ready(Asked::Done(find_id(body).map(|id| error_frame(Some(id), &error)))).boxed()
    }

    fn find_transfer(&self, _method: &str, _params: Option<&RawValue>) -> Option<error::Elsewhere> {
        None
    }

    fn reaches_others(&self) -> bool {
        false
    }

    fn collect(&self, _there: error::Elsewhere, _body: Bytes) -> BoxFuture<'_, error::Result<Bytes>> {
        ready(Err(error::Error::busy())).boxed()
    }

    fn may_call(&self, method: &str) -> bool {
        !OF_THE_MACHINE.contains(&method)
    }
}

/// Serves the tunnels of other nodes until the listener stops.
pub async fn accept_peers(server: Arc<Server>, mut listener: PeerListener) {
    let room = FrameBudget::new(server.ops.config.max_frame);
    let next = AtomicU64::new(FIRST_PEER_CONNECTION);
    while let Some(IncomingTunnel { tunnel, origin }) = listener.accept().await {
        // Nodes vouch for the clients of their sockets, who are all the owner.
        if *origin.requester() != Requester::Owner {
            tracing::warn!(?origin, "refused a tunnel of another node for somebody who is not the owner");
            continue;
        }
        let (served, room) = (server.clone(), room.clone());
        let connection = next.fetch_add(1, Ordering::Relaxed);
        server.connections.spawn_tracked(async move {
            if let Err(e) = serve_tunnel(&served, tunnel, connection, room).await {
                tracing::debug!(connection, "the tunnel of another node ended: {e}");
            }
        });
    }
    listener.drain().await;
}

/// Serves a tunnel as a connection to the socket: through a pair of sockets, so that it has the same limits.
async fn serve_tunnel(server: &Arc<Server>, mut tunnel: Tunnel, connection: u64, room: FrameBudget) -> io::Result<()> {
    let (here, there) = StdStream::pair()?;
    here.set_nonblocking(true)?;
    there.set_nonblocking(true)?;
    let (ops, stop, stops) = (server.ops.clone(), server.stop.clone(), server.stop.clone());
    let limit = ops.config.max_frame;
    let served = serve(Ok(OwnedFd::from(there)), ops, (connection, Elsewhere::told()), room, stop);
    let served = server.connections.spawn_tracked(served);
    let (mut from_server, mut to_server) = UnixStream::from_std(here)?.into_split();
    {
        let (reader, writer) = tunnel.split();
        let requests = async {
            while let Some(body) = reader.next().await? {
                match write_frame(&mut to_server, &body, limit).await {
                    // The daemon stops and reads no more. What it has read is still answered, and the others were not run.
                    Err(e) if e.kind() == io::ErrorKind::BrokenPipe && stops.is_cancelled() => break,
                    written => written?,
                }
            }
            // All requests were read; their answers follow.
            let _ = to_server.shutdown().await;
            io::Result::Ok(())
        };
        let answers = async {
            let mut received = BytesMut::new();
            while let Some(body) = read_frame(&mut from_server, &mut received, limit).await? {
                writer.send(body).await?;
            }
            io::Result::Ok(())
        };
        let (mut requests, mut answers) = (std::pin::pin!(requests), std::pin::pin!(answers));
        let mut have_ended = false;
        loop {
            tokio::select! {
                ended = &mut answers => break ended?,
                ended = &mut requests, if !have_ended => {
                    ended?;
                    have_ended = true;
                }
            }
        }
    }
    // What it was asked before a panic has no answer, and may have been done: only a broken tunnel says so.
    if served.await.is_ok() {
        tunnel.finish().await;
    }
    Ok(())
}

async fn write_frame(to: &mut OwnedWriteHalf, body: &[u8], limit: usize) -> io::Result<()> {
    let header = encode_header(body.len(), limit).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
    to.write_all(&header).await?;
    to.write_all(body).await
}

/// Reads a frame; `None` at the end.
async fn read_frame(from: &mut OwnedReadHalf, received: &mut BytesMut, limit: usize) -> io::Result<Option<Bytes>> {
    loop {
        if let Some(body) = FrameCodec::new(limit.max(chorus_proto::frame::MAX_FRAME)).decode(received)? {
            return Ok(Some(body));
        }
        received.reserve(4096);
        if from.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
}
