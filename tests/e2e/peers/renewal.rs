//! Certificates that are renewed while nodes are connected.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use chorus_peers::{ClusterCredentials, ListenerLimits, PeerPool};
use chorus_tests::certificates::Authority;
use chorus_tests::{DEADLINE, wait_until};

use super::{Certificates, EchoNode, Result, VALID, ask, names_of, owner, pool_of, sign};

/// Connects over and over until that succeeds, or fails, with the right message.
async fn wait_for(pool: &PeerPool, node: &EchoNode, wanted: Option<&str>) -> Result {
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        wait_until(wanted.unwrap_or("a tunnel"), DEADLINE, || {
            runtime.block_on(async {
                // A pooled connection would not check anything again.
                match (pool.connect(&node.address("b"), &owner()).await, wanted) {
                    (Ok(mut tunnel), None) => ask(&mut tunnel, b"x").await.ok().map(|_| ()),
                    (Err(failure), Some(wanted)) => failure.message.contains(wanted).then_some(()),
                    _ => None,
                }
            })
        });
    });
    Ok(())
}

/// Connects over and over until a node has read its files again, for the time with this number.
async fn wait_for_files(pool: &PeerPool, node: &EchoNode, credentials: &ClusterCredentials, generation: u64) -> Result {
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        wait_until("the files to be read again", DEADLINE, || {
            let _ = runtime.block_on(pool.connect(&node.address("b"), &owner()));
            (credentials.generation() >= generation).then_some(())
        });
    });
    Ok(())
}

/// Replaces certificate and key of a node, one after the other.
fn renew(authority: &Authority, dir: &Path, node: &str, between: impl FnOnce() -> Result) -> Result {
    let (cert, key) = sign(authority, dir, "renewed", &names_of(node), VALID);
    fs::rename(cert, dir.join(format!("{node}.crt")))?;
    between()?;
    fs::rename(key, dir.join(format!("{node}.key")))?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_needs_no_restart_and_ends_no_tunnel() -> Result {
    let certificates = Certificates::create()?;
    let (dir, old) = (certificates.dir.path(), certificates.authority.certificate());
    let credentials = certificates.settings("b");
    let credentials = Arc::new(ClusterCredentials::load(&credentials, "b")?);
    let node = EchoNode::start_with(credentials.clone(), ListenerLimits::default()).await?;
    let of_a = certificates.credentials("a")?;
    let pool = pool_of(of_a.clone());
    let mut tunnel = pool.connect(&node.address("b"), &owner()).await?;
    ask(&mut tunnel, b"x").await?;
    let mut pooled = pool.connect(&node.address("b"), &owner()).await?;
    ask(&mut pooled, b"x").await?;
    assert!(pooled.finish().await);
    wait_until("the pool", DEADLINE, || (pool.idle("b") == 1).then_some(()));

    // Another authority takes over. First both are trusted, in the one file that the nodes share.
    let new = Authority::create(&certificates.path("new"), "new");
    let new_text = fs::read_to_string(new.certificate())?;
    fs::write(&old, fs::read_to_string(&old)? + &new_text)?;
    wait_for_files(&pool, &node, &of_a, 1).await?;
    wait_for_files(&pool, &node, &credentials, 1).await?;
    // The node b gets its certificate; in the middle of that the earlier one works.
    renew(&new, dir, "b", || {
        let runtime = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| runtime.block_on(wait_for(&pool, &node, None)))
    })?;
    wait_for_files(&pool, &node, &credentials, 2).await?;
    // Now only the new authority is trusted: the node a, which has the earlier certificate, keeps what it had read.
    fs::write(&old, &new_text)?;
    wait_for(&pool, &node, Some("does not trust the authority of this node's certificate")).await?;
    assert_eq!(pool.idle("b"), 0, "the connection of before the renewal is not used");
    renew(&new, dir, "a", || Ok(()))?;
    wait_for(&pool, &node, None).await?;
    // The tunnel of before is still there.
    assert_eq!(ask(&mut tunnel, b"y").await?.as_deref(), Some(&b"y"[..]));
    assert!(tunnel.finish().await);
    assert_eq!(pool.idle("b"), 0, "its connection has no further tunnel");
    Ok(())
}
