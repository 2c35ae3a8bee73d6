//! Makes a connection to a node: TCP, TLS, hello.

use std::io;
use std::net::SocketAddr;

use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::{TlsConnector, TlsStream};
use tokio_util::sync::CancellationToken;

use crate::certificates::{NODE_URI, names_node};
use crate::credentials::{ALPN, TlsConfigs};
use crate::errors::{ConnectError, ConnectErrorKind};
use crate::hello::{Hello, HelloReply, PROTOCOL};
use crate::limits::PoolLimits;
use crate::node::{LocalNode, PeerAddress};
use crate::settings::server_name;
use crate::socket_options;
use crate::transport::{self, Connection};

/// Connects to a node. Takes as long as the network does.
pub(crate) async fn dial(
    target: &PeerAddress,
    local: &LocalNode,
    configs: &TlsConfigs,
    limits: PoolLimits,
    cut: &CancellationToken,
) -> Result<Connection, ConnectError> {
    let Some((name, host, port)) = server_name(&target.address) else {
        return Err(ConnectError::new(ConnectErrorKind::Unreachable, target, "the address has no host and port")
            .hint("check `advertise` of that node"));
    };
    let explain = |failure: io::Error| ConnectError::from_io(target, &failure);
    let found = lookup_host((host, port)).await;
    let addresses: Vec<SocketAddr> =
        found.map_err(|failure| ConnectError::lookup_failed(target, host, &failure))?.collect();
    if addresses.is_empty() {
        return Err(ConnectError::unknown_host(target, host));
    }
    let stream = TcpStream::connect(&*addresses).await.map_err(explain)?;
    socket_options::set(&stream, limits.stall_limit).map_err(explain)?;
    let tls = start_tls(target, configs, name, stream).await?;
    let (mut reader, mut writer) = transport::split(tls, limits.max_frame, cut);
    // A hello that cannot be written was refused: the reason is in what can be read.
    let written = writer.send_control(&Hello::of(local)).await;
    let reply = match reader.next_control().await {
        Ok(reply) => reply,
        Err(failure) if crate::errors::tls_error(&failure).is_some() => return Err(explain(failure)),
        Err(failure) => return Err(explain(written.err().unwrap_or(failure))),
    };
    let hello = match serde_json::from_slice(&reply) {
        Ok(HelloReply::Accepted(hello)) => hello,
        Ok(HelloReply::Refused { reason, protocol }) => {
            let error = ConnectError::new(ConnectErrorKind::Refused, target, format!("it refuses this node: {reason}"));
            let is_older = protocol < PROTOCOL;
            return Err(if protocol == PROTOCOL {
                error.hint("the log of that node says more")
            } else if is_older {
                error.hint("update Chorus on that node")
            } else {
                error.hint("update Chorus on this node")
            });
        }
        Err(_) => return Err(ConnectError::new(ConnectErrorKind::WrongNode, target, "its answer is not a hello")),
    };
    let peer = hello.into_peer();
    if peer.id != target.id {
        let shown: String = peer.id.chars().take(80).collect();
        return Err(ConnectError::new(ConnectErrorKind::WrongNode, target, format!("node {shown:?} answers there")));
    }
    Ok(Connection { reader, writer, peer })
}

async fn start_tls(
    target: &PeerAddress,
    configs: &TlsConfigs,
    name: ServerName<'static>,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, ConnectError> {
    let connector = TlsConnector::from(configs.client.clone());
    let tls = connector.connect(name, stream).await.map_err(|failure| ConnectError::from_io(target, &failure))?;
    let (_, state) = tls.get_ref();
    if state.alpn_protocol() != Some(ALPN) {
        let error = ConnectError::new(ConnectErrorKind::WrongNode, target, "it speaks another protocol over TLS");
        return Err(error.hint("check `advertise` of that node"));
    }
    let certificate = state.peer_certificates().and_then(|chain| chain.first());
    if !certificate.is_some_and(|certificate| names_node(certificate, &target.id)) {
        let what = format!("its certificate does not have {NODE_URI}{}", target.id);
        return Err(ConnectError::new(ConnectErrorKind::WrongNode, target, what).hint(format!(
            "check `advertise` of that node, or create its certificate again: chorusctl cluster cert {}=HOST",
            target.id
        )));
    }
    Ok(TlsStream::from(tls))
}
