//! Tunnels: their frames, their end, and on whose behalf they are.

use bytes::Bytes;
use chorus_base::requester::Requester;
use chorus_peers::{ConnectErrorKind, ListenerLimits, Origin, Outcome, PeerListener, Rejected};
use tokio_util::sync::CancellationToken;

use super::{Certificates, EchoNode, Result, ask, local, owner, peer_at, pool_of};

#[tokio::test(flavor = "multi_thread")]
async fn the_requester_arrives_as_the_node_vouches_for_it() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let pool = pool_of(certificates.credentials("a")?);
    let person = Requester::Person { id: "1".into(), name: "Mara".into(), roles: vec!["@owner".into()] };
    for requester in [Requester::Owner, person, Requester::Nobody] {
        let mut tunnel = pool.connect(&node.address("b"), &Origin::Client(requester.clone())).await?;
        assert_eq!(tunnel.peer().id, "b");
        assert_eq!(ask(&mut tunnel, b"x").await?.as_deref(), Some(&b"x"[..]));
        assert!(tunnel.finish().await);
        let (origin, _) = node.received.lock().pop().ok_or("nothing arrived")?;
        assert_eq!(origin.requester(), &requester);
        assert!(matches!(origin, Origin::Peer { node, .. } if node.id == "a" && node.boot == 1));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_peer_are_never_forwarded_again() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let pool = pool_of(certificates.credentials("a")?);
    let mut tunnel = pool.connect(&node.address("b"), &owner()).await?;
    ask(&mut tunnel, b"x").await?;
    let (origin, _) = node.received.lock().pop().ok_or("nothing arrived")?;
    let failure = pool.connect(&node.address("b"), &origin).await.err().ok_or("it was forwarded")?;
    assert_eq!(failure.kind, ConnectErrorKind::Forbidden);
    let itself = pool.connect(&node.address("a"), &owner()).await.err().ok_or("it connected to itself")?;
    assert_eq!(itself.kind, ConnectErrorKind::Forbidden);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_keep_their_order_and_their_bytes() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let pool = pool_of(certificates.credentials("a")?);
    let mut tunnel = pool.connect(&node.address("b"), &owner()).await?;
    let bodies: Vec<Bytes> = (1..300_u32).map(|n| n.to_be_bytes().repeat(n as usize).into()).collect();
    let queue = tunnel.split().1.queue();
    for body in &bodies {
        // From another task, as those who write the stream of a turn.
        while let Err(rejected) = queue.offer(body.clone()) {
            assert_eq!(rejected, Rejected::Full(body.clone()));
            tunnel.split().1.flush().await?;
        }
    }
    for body in &bodies {
        assert_eq!(tunnel.next().await?.as_ref(), Some(body));
    }
    assert_eq!(node.received(), bodies);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_arrive_after_the_client_has_ended() -> Result {
    let certificates = Certificates::create()?;
    let mut listener = PeerListener::bind(
        certificates.credentials("b")?,
        local("b"),
        ListenerLimits::default(),
        CancellationToken::new(),
    )
    .await?;
    let port = listener.local_address().port();
    let server = chorus_runtime::spawn(async move {
        let mut tunnel = listener.accept().await.expect("a tunnel").tunnel;
        let mut asked = Vec::new();
        while let Some(body) = tunnel.next().await.expect("a frame") {
            asked.push(body);
        }
        // Much more than fits into the buffers of both sockets.
        for body in asked {
            tunnel.send(body.repeat(1 << 20).into()).await.expect("sent");
        }
        assert!(tunnel.finish().await);
        listener
    });
    let pool = pool_of(certificates.credentials("a")?);
    let mut tunnel = pool.connect(&peer_at("b", port), &owner()).await?;
    for body in [&b"first"[..], b"second"] {
        tunnel.split().1.feed(Bytes::from_static(body)).await?;
    }
    tunnel.split().1.end().await?;
    assert_eq!(tunnel.next().await?.map(|body| body.len()), Some(5 << 20));
    assert_eq!(tunnel.next().await?.map(|body| body.len()), Some(6 << 20));
    assert_eq!(tunnel.next().await?, None);
    assert!(tunnel.finish().await);
    server.await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_did_not_take_before_it_ended_was_not_run() -> Result {
    let certificates = Certificates::create()?;
    let mut listener = PeerListener::bind(
        certificates.credentials("b")?,
        local("b"),
        ListenerLimits::default(),
        CancellationToken::new(),
    )
    .await?;
    let port = listener.local_address().port();
    let server = chorus_runtime::spawn(async move {
        let mut tunnel = listener.accept().await.expect("a tunnel").tunnel;
        let first = tunnel.next().await.expect("a frame").expect("a request");
        tunnel.send(first).await.expect("sent");
        let ended = tunnel.finish().await;
        // The other tunnel is dropped in the middle of its request.
        let mut tunnel = listener.accept().await.expect("a tunnel").tunnel;
        tunnel.next().await.expect("a frame");
        drop(tunnel);
        ended
    });
    let pool = pool_of(certificates.credentials("a")?);
    let mut tunnel = pool.connect(&peer_at("b", port), &owner()).await?;
    assert_eq!(ask(&mut tunnel, b"taken").await?.as_deref(), Some(&b"taken"[..]));
    let late = tunnel.split().1.feed(Bytes::from_static(b"late")).await?;
    assert_eq!(tunnel.outcome(late), Outcome::NotRun, "it is queued only");
    tunnel.split().1.flush().await?;
    assert_eq!(tunnel.next().await?, None);
    assert_eq!(tunnel.outcome(late), Outcome::NotRun);
    assert!(tunnel.finish().await);
    let mut tunnel = pool.connect(&peer_at("b", port), &owner()).await?;
    let number = tunnel.send(Bytes::from_static(b"begun")).await?;
    assert!(tunnel.next().await.is_err());
    assert_eq!(tunnel.outcome(number), Outcome::Unknown);
    assert!(server.await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_that_arrives_while_the_node_stops_was_not_run() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let pool = pool_of(certificates.credentials("a")?);
    let mut tunnel = pool.connect(&node.address("b"), &owner()).await?;
    ask(&mut tunnel, b"x").await?;
    assert!(tunnel.finish().await);
    let mut tunnel = pool.connect(&node.address("b"), &owner()).await?;
    node.stop.cancel();
    node.drained.await?;
    // The opening leaves with the first frame: the node has stopped before.
    let number = tunnel.send(Bytes::from_static(b"late")).await.unwrap_or(0);
    while let Ok(Some(_)) = tunnel.next().await {}
    assert_eq!(tunnel.outcome(number), Outcome::NotRun);
    assert_eq!(node.received.lock().len(), 1);
    Ok(())
}
