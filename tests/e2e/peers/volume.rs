//! Large frames, and sides that do not read.

use std::time::Duration;

use bytes::Bytes;
use chorus_peers::{ListenerLimits, Outcome, PeerListener, PoolLimits};
use chorus_proto::frame::MAX_FRAME;
use chorus_tests::wait::pause;
use tokio_util::sync::CancellationToken;

use super::{Certificates, EchoNode, Result, ask, local, owner, peer_at, pool_of, pool_with};

/// A node whose tunnels are not read after their first frame.
async fn start_unread(certificates: &Certificates) -> Result<(u16, tokio::task::JoinHandle<()>)> {
    let (credentials, limits) = (certificates.credentials("b")?, ListenerLimits::default());
    let mut listener = PeerListener::bind(credentials, local("b"), limits, CancellationToken::new()).await?;
    let port = listener.local_address().port();
    let server = chorus_runtime::spawn(async move {
        let mut tunnels = Vec::new();
        while let Some(mut incoming) = listener.accept().await {
            incoming.tunnel.next().await.expect("a frame");
            tunnels.push(incoming);
        }
    });
    Ok((port, server))
}

/// A frame of the largest size, with its number in it.
fn largest(number: u8) -> Bytes {
    let mut body = vec![number; MAX_FRAME];
    for (at, byte) in body.iter_mut().enumerate().step_by(4099) {
        *byte = at.to_le_bytes()[1];
    }
    body.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_frames_pass_both_ways_at_once_while_one_side_reads_slowly() -> Result {
    const FRAMES: u8 = 4;
    let certificates = Certificates::create()?;
    let limits = ListenerLimits::default();
    let credentials = certificates.credentials("b")?;
    let mut listener = PeerListener::bind(credentials, local("b"), limits, CancellationToken::new()).await?;
    let port = listener.local_address().port();
    let server = chorus_runtime::spawn(async move {
        let mut tunnel = listener.accept().await.expect("a tunnel").tunnel;
        let (reader, writer) = tunnel.split();
        let write = async {
            for number in 0..FRAMES {
                writer.send(largest(100 + number)).await.expect("sent");
            }
        };
        let read = async {
            for number in 0..FRAMES {
                pause(Duration::from_millis(400)).await;
                let body = reader.next().await.expect("a frame").expect("a frame");
                assert!(body == largest(number));
            }
        };
        tokio::join!(write, read);
        assert!(tunnel.finish().await);
        listener
    });
    let pool = pool_of(certificates.credentials("a")?);
    let mut tunnel = pool.connect(&peer_at("b", port), &owner()).await?;
    let (reader, writer) = tunnel.split();
    let write = async {
        for number in 0..FRAMES {
            writer.send(largest(number)).await.expect("sent");
        }
    };
    let read = async {
        for number in 0..FRAMES {
            let body = reader.next().await.expect("a frame").expect("a frame");
            assert!(body == largest(100 + number));
        }
    };
    tokio::join!(write, read);
    assert!(tunnel.finish().await);
    server.await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_above_the_limit_is_refused_by_both_sides() -> Result {
    let certificates = Certificates::create()?;
    let limits = ListenerLimits { max_frame: 1000, ..ListenerLimits::default() };
    let node = EchoNode::start_with(certificates.credentials("b")?, limits).await?;
    let pool = pool_of(certificates.credentials("a")?);
    let mut tunnel = pool.connect(&node.address("b"), &owner()).await?;
    let refused = tunnel.send(vec![0; MAX_FRAME + 1].into()).await;
    assert_eq!(refused.err().map(|e| e.kind()), Some(std::io::ErrorKind::InvalidInput));
    assert_eq!(ask(&mut tunnel, &[1; 1000]).await?.map(|body| body.len()), Some(1000));
    tunnel.send(vec![1; 1001].into()).await?;
    assert!(tunnel.next().await.is_err(), "the other side ends the connection");
    assert_eq!(node.received().len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_side_that_does_not_read_holds_the_other_up_and_nobody_else() -> Result {
    let certificates = Certificates::create()?;
    let limits = ListenerLimits::default();
    let credentials = certificates.credentials("b")?;
    let mut listener = PeerListener::bind(credentials, local("b"), limits, CancellationToken::new()).await?;
    let port = listener.local_address().port();
    let server = chorus_runtime::spawn(async move {
        let mut stuck = listener.accept().await.expect("a tunnel").tunnel;
        let mut other = listener.accept().await.expect("a tunnel").tunnel;
        while let Ok(Some(body)) = other.next().await {
            other.send(body).await.expect("sent");
        }
        other.finish().await;
        let mut read = 0;
        while stuck.next().await.expect("a frame").is_some() {
            read += 1;
        }
        stuck.finish().await;
        read
    });
    let pool = pool_of(certificates.credentials("a")?);
    let mut stuck = pool.connect(&peer_at("b", port), &owner()).await?;
    stuck.send(Bytes::from_static(b"first")).await?;
    let mut sent = 1;
    let full = async {
        loop {
            stuck.split().1.feed(vec![0; 1 << 20].into()).await?;
            sent += 1;
        }
    };
    tokio::select! {
        failed = full => { let failed: Result = failed; return failed }
        () = pause(Duration::from_secs(1)) => {}
    }
    assert!((2..64).contains(&sent), "{sent} MiB were accepted while nobody reads");
    let mut other = pool.connect(&peer_at("b", port), &owner()).await?;
    for _ in 0..100 {
        assert_eq!(ask(&mut other, b"x").await?.as_deref(), Some(&b"x"[..]));
    }
    assert!(other.finish().await);
    stuck.split().1.flush().await?;
    assert!(stuck.finish().await);
    assert_eq!(server.await?, sent);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_side_that_takes_nothing_for_too_long_is_given_up() -> Result {
    let certificates = Certificates::create()?;
    let (port, server) = start_unread(&certificates).await?;
    let limits = PoolLimits { stall_limit: Duration::from_secs(2), ..PoolLimits::default() };
    let pool = pool_with(certificates.credentials("a")?, limits);
    let mut quiet = pool.connect(&peer_at("b", port), &owner()).await?;
    quiet.send(Bytes::from_static(b"first")).await?;
    let mut stuck = pool.connect(&peer_at("b", port), &owner()).await?;
    stuck.send(Bytes::from_static(b"first")).await?;
    let number = stuck.split().1.feed(vec![0; MAX_FRAME].into()).await?;
    let failure = stuck.next().await.err().ok_or("it was answered")?;
    assert_eq!(failure.kind(), std::io::ErrorKind::TimedOut, "{failure}");
    assert_eq!(stuck.outcome(number), Outcome::NotRun, "the last byte did not leave");
    // Nothing waits for the other tunnel, so that it lasts.
    assert_eq!(quiet.send(Bytes::from_static(b"second")).await?, 1);
    server.abort();
    Ok(())
}
