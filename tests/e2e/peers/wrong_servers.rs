//! A node sends nothing to a server that is not the node it wants.

use std::net::TcpListener;
use std::time::Duration;

use chorus_peers::{ConnectErrorKind, PoolLimits};
use chorus_tests::certificates::Authority;
use chorus_tests::free_port::free_port;

use super::openssl::Server;
use super::{Certificates, EchoNode, Result, VALID, names_of, owner, peer_at, pool_of, pool_with, sign};

#[tokio::test(flavor = "multi_thread")]
async fn each_wrong_server_is_refused_with_its_reason() -> Result {
    use ConnectErrorKind::{NotTrusted, WrongNode};
    let certificates = Certificates::create()?;
    let other = Authority::create(&certificates.path("other"), "cluster");
    let pool = pool_of(certificates.credentials("a")?);
    let good = certificates.sign("b", VALID);
    let expired = certificates.sign_names("expired", &names_of("b"), -9..-1);
    let future = certificates.sign_names("future", &names_of("b"), 3..9);
    let foreign = sign(&other, certificates.dir.path(), "foreign", &names_of("b"), VALID);
    let host = certificates.sign_names("host", "DNS:b.example.org,URI:chorus:node:b", VALID);
    let service = certificates.sign_names("service", "IP:127.0.0.1,DNS:b", VALID);
    const CHORUS: &[&str] = &["-alpn", "chorus-peer"];
    let table: [(_, &[&str], _, &str); 8] = [
        (&expired, CHORUS, NotTrusted, "its certificate is refused: it expired on"),
        (&future, CHORUS, NotTrusted, "its certificate is refused: it is not valid before"),
        (&foreign, CHORUS, NotTrusted, "signed by an authority that is not trusted"),
        (&host, CHORUS, NotTrusted, "it does not name 127.0.0.1"),
        (&service, CHORUS, WrongNode, "its certificate does not have chorus:node:b"),
        (&good, &[], WrongNode, "it speaks another protocol over TLS"),
        (&good, &["-alpn", "http/1.1"], NotTrusted, "it is not a node of Chorus"),
        (&good, &["-alpn", "chorus-peer", "-tls1_2"], NotTrusted, "it ended the handshake: ProtocolVersion"),
    ];
    for ((cert, key), args, kind, reason) in table {
        let server = Server::start(cert, key, args)?;
        let failure = pool.connect(&peer_at("b", server.port), &owner()).await.err().ok_or(reason)?;
        assert!(failure.message.contains(reason), "{reason}: {failure}");
        assert_eq!(failure.kind, kind, "{failure}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_at_the_address_is_refused() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let pool = pool_of(certificates.credentials("a")?);
    let failure = pool.connect(&node.address("c"), &owner()).await.err().ok_or("it was accepted")?;
    assert_eq!(failure.kind, ConnectErrorKind::WrongNode);
    assert!(failure.message.contains("its certificate does not have chorus:node:c"), "{failure}");
    // A certificate may name several nodes; then the hello decides.
    let (cert, key) = certificates.sign_names("two", &format!("{},URI:chorus:node:d", names_of("c")), VALID);
    let settings = chorus_peers::ClusterSettings { cert, key, ..certificates.settings("c") };
    let credentials = chorus_peers::ClusterCredentials::load(&settings, "c")?;
    let node = EchoNode::start_with(credentials.into(), chorus_peers::ListenerLimits::default()).await?;
    let failure = pool.connect(&node.address("d"), &owner()).await.err().ok_or("it was accepted")?;
    assert!(failure.message.contains("node \"c\" answers there"), "{failure}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_absent_or_silent_or_no_server_is_named() -> Result {
    let certificates = Certificates::create()?;
    let limits = PoolLimits { connect_timeout: Duration::from_millis(1500), ..PoolLimits::default() };
    let pool = pool_with(certificates.credentials("a")?, limits);
    let (silent, other) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    let (silent_port, other_port) = (silent.local_addr()?.port(), other.local_addr()?.port());
    std::thread::spawn(move || {
        for stream in other.incoming() {
            let _ = stream.and_then(|mut stream| std::io::Write::write_all(&mut stream, b"SSH-2.0-OpenSSH_9.2\r\n"));
        }
    });
    let closed = free_port();
    let table =
        [(closed, "nothing listens there"), (silent_port, "does not answer"), (other_port, "does not speak TLS")];
    for (port, reason) in table {
        let failure = pool.connect(&peer_at("b", port), &owner()).await.err().ok_or(reason)?;
        assert!(failure.message.contains(reason), "{reason}: {failure}");
    }
    let nowhere = chorus_peers::PeerAddress { id: "b".into(), address: "b".into() };
    let failure = pool.connect(&nowhere, &owner()).await.err().ok_or("it was accepted")?;
    assert!(failure.message.contains("no host and port"), "{failure}");
    Ok(())
}
