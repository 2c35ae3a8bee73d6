//! Serves one connection to the port of this node: TLS, hello, and its tunnels one after the other.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsStream};
use tokio_util::sync::CancellationToken;

use crate::certificates::{NODE_URI, names_node};
use crate::credentials::{ALPN, ClusterCredentials};
use crate::errors::refusal_reason;
use crate::hello::{Control, Hello, HelloProblem, HelloReply, PROTOCOL};
use crate::limits::ListenerLimits;
use crate::listener::IncomingTunnel;
use crate::node::{LocalNode, Origin};
use crate::pending_handshakes::{PendingHandshake, PendingHandshakes};
use crate::refusals::Refusals;
use crate::socket_options;
use crate::transport::{self, Connection, TunnelReader};
use crate::tunnel::Tunnel;

/// Time for which a connection is still read at its end: if it were closed with unread bytes, the other side would not
/// get the reason.
const LINGER_TIME: Duration = Duration::from_secs(1);

/// State that all connections to the port share.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) credentials: Arc<ClusterCredentials>,
    pub(crate) node: LocalNode,
    pub(crate) limits: ListenerLimits,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) pending: PendingHandshakes,
    pub(crate) refusals: Refusals,
    pub(crate) to_accept: mpsc::Sender<IncomingTunnel>,
    pub(crate) stop: CancellationToken,
}

/// A connection that was not accepted.
enum Failed {
    /// It ended, or said nothing in time.
    Ended,
    /// It is refused for a reason.
    Refused(String),
}

/// Serves a connection until it ends.
pub(crate) async fn serve(incoming: &Incoming, stream: TcpStream, address: IpAddr, handshake: PendingHandshake) {
    let accepted = tokio::select! {
        () = incoming.stop.cancelled() => return,
        () = handshake.evicted() => return tracing::debug!(%address, "a connection without a hello ended for another"),
        accepted = timeout(incoming.limits.handshake_timeout, shake_hands(incoming, stream)) => accepted,
    };
    drop(handshake);
    match accepted {
        Ok(Ok((connection, permit))) => {
            if let Err(failure) = run_tunnels(incoming, connection).await {
                tracing::debug!(%address, "a connection of another node ended: {failure}");
            }
            drop(permit);
        }
        Ok(Err(Failed::Refused(reason))) => incoming.refusals.record(address, &reason),
        Ok(Err(Failed::Ended)) => tracing::debug!(%address, "a connection ended without a hello"),
        Err(_) => incoming.refusals.record(address, "it did not say hello in time"),
    }
}

/// Agrees on TLS and exchanges hellos.
async fn shake_hands(incoming: &Incoming, stream: TcpStream) -> Result<(Connection, OwnedSemaphorePermit), Failed> {
    socket_options::set(&stream, incoming.limits.stall_limit).map_err(|_| Failed::Ended)?;
    let configs = incoming.credentials.current().await;
    let accepted = TlsAcceptor::from(configs.server.clone()).accept(stream).into_fallible().await;
    let tls = match accepted {
        Ok(tls) => tls,
        Err((failure, mut stream)) => {
            let Some(reason) = refusal_reason(&failure) else { return Err(Failed::Ended) };
            linger(&mut stream).await;
            return Err(Failed::Refused(reason));
        }
    };
    let (_, state) = tls.get_ref();
    let speaks_chorus = state.alpn_protocol() == Some(ALPN);
    let certificate = state.peer_certificates().and_then(|chain| chain.first()).cloned();
    let (mut reader, mut writer) =
        transport::split(TlsStream::from(tls), incoming.limits.max_frame, &CancellationToken::new());
    let reason = 'refused: {
        if !speaks_chorus {
            break 'refused "it speaks another protocol over TLS".to_owned();
        }
        let hello = reader.next_control().await.map_err(|failure| match failure.kind() {
            io::ErrorKind::InvalidData => Failed::Refused("its hello is too long".to_owned()),
            _ => refusal_reason(&failure).map_or(Failed::Ended, Failed::Refused),
        })?;
        let hello = match Hello::parse(&hello) {
            Ok(hello) => hello,
            Err(HelloProblem::Malformed) => break 'refused "its first frame is not a hello".to_owned(),
            Err(HelloProblem::Protocol(other)) => {
                break 'refused format!("it speaks version {other} of the protocol of nodes, this node {PROTOCOL}");
            }
        };
        let peer = hello.into_peer();
        if !certificate.is_some_and(|certificate| names_node(&certificate, &peer.id)) {
            let shown: String = peer.id.chars().take(80).collect();
            break 'refused format!("its certificate does not have {NODE_URI}{shown}, which it claims to be");
        }
        if peer.id == incoming.node.id {
            break 'refused format!("it has the name of this node, {}", peer.id);
        }
        let Ok(permit) = incoming.permits.clone().try_acquire_owned() else {
            break 'refused "too many connections of nodes".to_owned();
        };
        let reply = HelloReply::Accepted(Hello::of(&incoming.node));
        writer.send_control(&reply).await.map_err(|_| Failed::Ended)?;
        return Ok((Connection { reader, writer, peer }, permit));
    };
    if writer.send_control(&HelloReply::refused(reason.clone())).await.is_ok() {
        writer.shut_down().await;
        discard(&mut reader).await;
    }
    Err(Failed::Refused(reason))
}

/// Runs the tunnels of a connection, one after the other.
async fn run_tunnels(incoming: &Incoming, mut connection: Connection) -> io::Result<()> {
    loop {
        let next = tokio::select! {
            biased;
            () = incoming.stop.cancelled() => None,
            () = incoming.to_accept.closed() => None,
            next = timeout(incoming.limits.silence_limit, connection.reader.next_control()) => next.ok(),
        };
        let Some(control) = next else { return end_connection(connection).await };
        match serde_json::from_slice(&control?) {
            Ok(Control::Open { requester }) => {
                let origin = Origin::Peer { node: connection.peer.clone(), requester };
                let (return_to, returned) = oneshot::channel();
                connection.reader.begin_tunnel();
                let tunnel = Tunnel::new(connection, return_to);
                if let Err(refused) = incoming.to_accept.send(IncomingTunnel { tunnel, origin }).await {
                    // The node stops: nothing of the tunnel was carried out.
                    refused.0.tunnel.finish().await;
                    return Ok(());
                }
                let Ok(back) = returned.await else { return Ok(()) };
                connection = back;
            }
            Ok(Control::Ping) => connection.writer.send_control(&Control::Pong).await?,
            Ok(Control::Pong) | Err(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Says that there will be no further tunnel. If one is on its way, the other side learns that it did not start.
async fn end_connection(mut connection: Connection) -> io::Result<()> {
    connection.writer.end().await?;
    connection.writer.shut_down().await;
    discard(&mut connection.reader).await;
    Ok(())
}

/// Reads what arrives until the other side closes, for a short time.
async fn discard(reader: &mut TunnelReader) {
    let _ = timeout(LINGER_TIME, reader.discard()).await;
}

/// Does the same without TLS.
async fn linger(stream: &mut TcpStream) {
    let _ = stream.shutdown().await;
    let _ = timeout(LINGER_TIME, tokio::io::copy(stream, &mut tokio::io::sink())).await;
}
