//! Connections that are cut, stall or are slow: what was sent is known, and nothing is sent twice.

use std::time::Duration;

use bytes::Bytes;
use chorus_peers::{Outcome, PeerPool, PoolLimits};
use chorus_tests::fault_proxy::FaultProxy;

use super::{Certificates, EchoNode, Result, ask, owner, peer_at, pool_of, pool_with};

/// Requests of a tunnel.
const REQUESTS: usize = 4;

/// Numbers of requests by what the client knows of them at the end.
#[derive(Default)]
struct Tally {
    answered: usize,
    not_run: usize,
    unknown: usize,
    whole: usize,
}

/// Sends requests through a proxy that may cut, and compares what the client learns with what arrived.
async fn run_round(pool: &PeerPool, proxy: &FaultProxy, node: &EchoNode, round: usize, tally: &mut Tally) -> Result {
    let Ok(mut tunnel) = pool.connect(&peer_at("b", proxy.port()), &owner()).await else { return Ok(()) };
    let bodies: Vec<Bytes> = (0..REQUESTS).map(|n| format!("{round}.{n}.{}", "x".repeat(n * 40)).into()).collect();
    let mut numbers = Vec::new();
    for body in &bodies {
        numbers.push(tunnel.split().1.feed(body.clone()).await?);
    }
    let mut answered = Vec::new();
    while answered.len() < REQUESTS {
        match tunnel.next().await {
            Ok(Some(body)) => answered.push(body),
            Ok(None) | Err(_) => break,
        }
    }
    let outcomes: Vec<_> = numbers.iter().map(|number| tunnel.outcome(*number)).collect();
    let is_whole = answered.len() == REQUESTS;
    if is_whole {
        tunnel.finish().await;
        tally.whole += 1;
    } else {
        drop(tunnel);
    }
    // The node may still be reading what arrived.
    proxy.heal();
    let mut check = pool.connect(&peer_at("b", node.port), &owner()).await?;
    ask(&mut check, b"check").await?;
    let received = node.received();
    for (body, outcome) in bodies.iter().zip(outcomes) {
        let times = received.iter().filter(|one| *one == body).count();
        assert!(times <= 1, "{round}: {body:?} was sent {times} times");
        if answered.contains(body) {
            assert_eq!(times, 1);
            tally.answered += 1;
        } else if outcome == Outcome::NotRun {
            assert_eq!(times, 0, "{round}: {body:?} was carried out");
            tally.not_run += 1;
        } else {
            tally.unknown += 1;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_at_any_byte_loses_no_knowledge_and_doubles_nothing() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let pool = pool_of(certificates.credentials("a")?);
    let mut round = 0;
    for of_answers in [true, false] {
        let proxy = FaultProxy::start(node.port).await?;
        let mut tally = Tally::default();
        // What follows the handshake is cut at each byte, or at some.
        let step = if std::env::var("CHORUS_FAULTS").is_ok_and(|faults| faults == "all") { 1 } else { 5 };
        let mut bytes = 0;
        while tally.whole < 3 {
            if of_answers {
                proxy.cut_after_answer_bytes(bytes);
            } else {
                proxy.cut_after_request_bytes(bytes);
            }
            let before = tally.answered + tally.not_run + tally.unknown;
            run_round(&pool, &proxy, &node, round, &mut tally).await?;
            let has_connected = tally.answered + tally.not_run + tally.unknown > before;
            bytes += if has_connected { step } else { 150 };
            round += 1;
        }
        assert!(tally.answered > 0 && tally.unknown > 0, "{} {}", tally.answered, tally.unknown);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_did_not_leave_in_whole_was_not_run() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let proxy = FaultProxy::start(node.port).await?;
    let pool = pool_of(certificates.credentials("a")?);
    let mut tunnel = pool.connect(&peer_at("b", proxy.port()), &owner()).await?;
    ask(&mut tunnel, b"x").await?;
    proxy.stall();
    // More than the sockets take.
    let number = tunnel.split().1.feed(vec![7; 16 << 20].into()).await?;
    tokio::select! {
        _ = tunnel.next() => return Err("it was answered".into()),
        () = chorus_tests::wait::pause(Duration::from_millis(300)) => {}
    }
    proxy.cut();
    assert!(tunnel.next().await.is_err());
    assert_eq!(tunnel.outcome(number), Outcome::NotRun);
    assert_eq!(node.received(), [&b"x"[..]]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_network_only_delays() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let proxy = FaultProxy::start(node.port).await?;
    proxy.delay(Duration::from_millis(60));
    let limits = PoolLimits { ping_interval: Duration::from_millis(20), ..PoolLimits::default() };
    let pool = pool_with(certificates.credentials("a")?, limits);
    for _ in 0..4 {
        let mut tunnel = pool.connect(&peer_at("b", proxy.port()), &owner()).await?;
        proxy.refuse_new();
        let bodies: Vec<Bytes> = (0..20_u8).map(|n| vec![n; 1000].into()).collect();
        for body in &bodies {
            tunnel.split().1.feed(body.clone()).await?;
        }
        for body in &bodies {
            assert_eq!(tunnel.next().await?.as_ref(), Some(body));
        }
        // A ping is on its way when the next tunnel begins.
        assert!(tunnel.finish().await);
        chorus_tests::wait_until("the pool", chorus_tests::DEADLINE, || (pool.idle("b") == 1).then_some(()));
        chorus_tests::wait::pause(Duration::from_millis(40)).await;
    }
    Ok(())
}
