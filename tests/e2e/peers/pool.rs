//! Connections that have another tunnel, and those that do not.

use std::time::Duration;

use chorus_peers::{PoolLimits, Tunnel};
use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::{DEADLINE, wait_until};

use super::{Certificates, EchoNode, Result, ask, owner, peer_at, pool_of, pool_with};

/// Waits until the pool has this many connections without a tunnel.
fn wait_for_idle(pool: &chorus_peers::PeerPool, count: usize) {
    wait_until("idle connections", DEADLINE, || (pool.idle("b") == count).then_some(()));
}

async fn use_once(tunnel: &mut Tunnel) -> Result {
    assert_eq!(ask(tunnel, b"x").await?.as_deref(), Some(&b"x"[..]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_has_one_tunnel_after_the_other() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    // Every connection goes through the proxy, which takes no new ones after the first.
    let proxy = FaultProxy::start(node.port).await?;
    let pool = pool_of(certificates.credentials("a")?);
    let target = peer_at("b", proxy.port());
    for round in 0..50 {
        let mut tunnel = pool.connect(&target, &owner()).await?;
        proxy.refuse_new();
        use_once(&mut tunnel).await?;
        assert!(tunnel.finish().await, "{round}");
        wait_for_idle(&pool, 1);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_tunnel_was_dropped_has_no_other() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let pool = pool_of(certificates.credentials("a")?);
    let mut tunnel = pool.connect(&node.address("b"), &owner()).await?;
    use_once(&mut tunnel).await?;
    drop(tunnel);
    let mut tunnel = pool.connect(&node.address("b"), &owner()).await?;
    use_once(&mut tunnel).await?;
    assert!(tunnel.finish().await);
    wait_for_idle(&pool, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn few_connections_wait_and_none_for_long() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let limits = PoolLimits { max_idle: 3, idle_limit: Duration::from_secs(3), ..PoolLimits::default() };
    let pool = pool_with(certificates.credentials("a")?, limits);
    let mut tunnels = Vec::new();
    for _ in 0..6 {
        let mut tunnel = pool.connect(&node.address("b"), &owner()).await?;
        use_once(&mut tunnel).await?;
        tunnels.push(tunnel);
    }
    for tunnel in tunnels {
        assert!(tunnel.finish().await);
        assert!(pool.idle("b") <= 3);
    }
    wait_for_idle(&pool, 3);
    wait_for_idle(&pool, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_connection_has_no_further_tunnel() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let pool =
        pool_with(certificates.credentials("a")?, PoolLimits { max_age: Duration::ZERO, ..PoolLimits::default() });
    let mut tunnel = pool.connect(&node.address("b"), &owner()).await?;
    use_once(&mut tunnel).await?;
    assert!(tunnel.finish().await);
    let mut tunnel = pool.connect(&node.address("b"), &owner()).await?;
    assert_eq!(pool.idle("b"), 0);
    use_once(&mut tunnel).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_connection_is_not_given_out() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let proxy = FaultProxy::start(node.port).await?;
    let limits = PoolLimits {
        ping_interval: Duration::from_millis(50),
        ping_timeout: Duration::from_secs(1),
        ..PoolLimits::default()
    };
    let pool = pool_with(certificates.credentials("a")?, limits);
    let target = peer_at("b", proxy.port());
    for silent in [false, true, false, true] {
        let mut tunnel = pool.connect(&target, &owner()).await?;
        use_once(&mut tunnel).await?;
        assert!(tunnel.finish().await);
        wait_for_idle(&pool, 1);
        if silent {
            proxy.fall_silent();
        } else {
            proxy.cut();
        }
        wait_for_idle(&pool, 0);
        proxy.heal();
        let mut tunnel = pool.connect(&target, &owner()).await?;
        use_once(&mut tunnel).await?;
        drop(tunnel);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_keep_a_connection_that_waits() -> Result {
    let certificates = Certificates::create()?;
    let limits = chorus_peers::ListenerLimits { silence_limit: Duration::from_secs(1), ..Default::default() };
    let node = EchoNode::start_with(certificates.credentials("b")?, limits).await?;
    let proxy = FaultProxy::start(node.port).await?;
    let limits = PoolLimits { ping_interval: Duration::from_millis(50), ..PoolLimits::default() };
    let pool = pool_with(certificates.credentials("a")?, limits);
    let target = peer_at("b", proxy.port());
    let mut tunnel = pool.connect(&target, &owner()).await?;
    proxy.refuse_new();
    use_once(&mut tunnel).await?;
    assert!(tunnel.finish().await);
    // Longer than the node waits for a connection that is silent.
    chorus_tests::wait::pause(Duration::from_millis(2500)).await;
    let mut tunnel = pool.connect(&target, &owner()).await?;
    use_once(&mut tunnel).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn all_connections_to_a_node_that_is_gone_end_at_once() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let proxy = FaultProxy::start(node.port).await?;
    let pool = pool_of(certificates.credentials("a")?);
    let target = peer_at("b", proxy.port());
    let mut tunnels = Vec::new();
    for _ in 0..3 {
        let mut tunnel = pool.connect(&target, &owner()).await?;
        use_once(&mut tunnel).await?;
        tunnels.push(tunnel);
    }
    assert!(tunnels.pop().ok_or("a tunnel")?.finish().await);
    wait_for_idle(&pool, 1);
    proxy.fall_silent();
    let mut waiting = Vec::new();
    for mut tunnel in tunnels {
        let number = tunnel.send(bytes::Bytes::from_static(b"lost")).await?;
        waiting.push(chorus_runtime::spawn(async move {
            let failure = tunnel.next().await.expect_err("nobody answers");
            (failure.kind(), tunnel.outcome(number))
        }));
    }
    pool.disconnect("b");
    for one in waiting {
        let (kind, outcome) = one.await?;
        assert_eq!(kind, std::io::ErrorKind::ConnectionAborted);
        assert_eq!(outcome, chorus_peers::Outcome::Unknown);
    }
    wait_for_idle(&pool, 0);
    proxy.heal();
    let mut tunnel = pool.connect(&target, &owner()).await?;
    use_once(&mut tunnel).await?;
    Ok(())
}
