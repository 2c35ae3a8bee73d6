//! Connections that say nothing cannot exhaust a node.

use std::io::Read as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use chorus_peers::ListenerLimits;
use chorus_tests::{DEADLINE, wait_until};

use super::{Certificates, EchoNode, Result, ask, owner, pool_of};

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_silent_connections_keep_no_peer_out() -> Result {
    let certificates = Certificates::create()?;
    // The time limit is too long to help.
    let limits = ListenerLimits { handshake_timeout: Duration::from_secs(600), ..ListenerLimits::default() };
    let node = EchoNode::start_with(certificates.credentials("b")?, limits).await?;
    let pool = pool_of(certificates.credentials("a")?);
    let port = node.port;
    let silent =
        move || (0..1000).map(|_| TcpStream::connect(("127.0.0.1", port))).collect::<std::io::Result<Vec<_>>>();
    let silent = tokio::task::block_in_place(silent)?;
    let began = Instant::now();
    let mut tunnels = Vec::new();
    for _ in 0..5 {
        let mut tunnel = pool.connect(&node.address("b"), &owner()).await?;
        assert_eq!(ask(&mut tunnel, b"x").await?.as_deref(), Some(&b"x"[..]));
        tunnels.push(tunnel);
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    // Most of them were ended for later ones, the oldest first; tunnels never are.
    let open = |stream: &mut &TcpStream| {
        let _ = stream.set_nonblocking(true);
        matches!(stream.read(&mut [0]), Err(e) if e.kind() == std::io::ErrorKind::WouldBlock)
    };
    wait_until("the oldest to end", DEADLINE, || {
        (silent.iter().filter(|stream| open(&mut &**stream)).count() <= 256).then_some(())
    });
    for tunnel in &mut tunnels {
        assert_eq!(ask(tunnel, b"y").await?.as_deref(), Some(&b"y"[..]));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_says_nothing_ends_in_time() -> Result {
    let certificates = Certificates::create()?;
    let limits = ListenerLimits { handshake_timeout: Duration::from_millis(200), ..ListenerLimits::default() };
    let node = EchoNode::start_with(certificates.credentials("b")?, limits).await?;
    let mut stream = TcpStream::connect(("127.0.0.1", node.port))?;
    assert_eq!(stream.read(&mut [0])?, 0);
    wait_until("the refusal", DEADLINE, || (node.reasons() == ["it did not say hello in time"]).then_some(()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_only_looked_at_is_not_logged() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    for _ in 0..10 {
        drop(TcpStream::connect(("127.0.0.1", node.port))?);
    }
    let pool = pool_of(certificates.credentials("a")?);
    let mut tunnel = pool.connect(&node.address("b"), &owner()).await?;
    assert_eq!(ask(&mut tunnel, b"x").await?.as_deref(), Some(&b"x"[..]));
    assert_eq!(node.reasons(), Vec::<String>::new());
    Ok(())
}
