//! The cache on the disk.

use std::os::unix::fs::PermissionsExt as _;

use chorus_proto::ErrorKind;
use chorus_session_objects::SessionBodies as _;

use super::*;

/// The entries of a cache, with their sizes.
fn entries(dir: &Path) -> Result<Vec<(std::path::PathBuf, u64)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name() != "lock" {
            found.push((entry.path(), entry.metadata()?.len()));
        }
    }
    Ok(found)
}

/// Bodies of a proxied bucket with a cache of 1 MB.
fn with_cache(node: &Proxied, dir: &Path) -> Result<ObjectBodies> {
    let cache = BodyCache::open(dir, 1 << 20)?;
    Ok(ObjectBodies::new(node.bucket.clone(), prefix(), Some(cache), node.clock.clock()))
}

#[tokio::test]
async fn what_was_read_is_not_fetched_again_even_after_a_restart() -> Result {
    let Some(node) = Proxied::start().await? else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let dir = dir.path().join("cache");
    let row = write(&node.bodies, messages(1000, 100)).await?;
    let fetch = async |bodies: &ObjectBodies| -> Result<usize> {
        drop(node.proxy.take_seen());
        assert_eq!(bodies.page(row.clone(), 500, 50).await?.len(), 50);
        Ok(node.proxy.take_seen().len())
    };
    let bodies = with_cache(&node, &dir)?;
    assert_eq!(fetch(&bodies).await?, 2);
    assert_eq!(fetch(&bodies).await?, 0);
    drop(bodies);
    assert_eq!(dir.metadata()?.permissions().mode() & 0o777, 0o700);
    let bodies = with_cache(&node, &dir)?;
    assert_eq!(fetch(&bodies).await?, 0);
    // Cut off, changed, and gone.
    let kept = entries(&dir)?;
    assert_eq!(kept.len(), 2 + usize::from(kept.len() > 2), "the index and one or two blocks");
    for (path, _) in &kept {
        assert_eq!(path.metadata()?.permissions().mode() & 0o777, 0o600);
    }
    let good = std::fs::read(&kept[0].0)?;
    let mut changed = good.clone();
    changed[good.len() / 2] ^= 1;
    for bytes in [Some(&good[1..]), Some(&changed[..]), Some(&[]), None] {
        match bytes {
            Some(bytes) => std::fs::write(&kept[0].0, bytes)?,
            None => std::fs::remove_file(&kept[0].0)?,
        }
        assert_eq!(fetch(&bodies).await?, 1);
        assert_eq!(std::fs::read(&kept[0].0)?, good);
        assert_eq!(fetch(&bodies).await?, 0);
    }
    Ok(())
}

#[tokio::test]
async fn the_cache_never_has_more_than_it_may_and_drops_what_was_not_used_for_longest() -> Result {
    let dir = tempfile::tempdir()?;
    let bucket = directory(dir.path())?;
    let path = dir.path().join("cache");
    let max_bytes = 200_000;
    let cache = BodyCache::open(&path, max_bytes)?;
    let bodies = bodies_in(&bucket, Some(cache.clone()));
    let mut rows = Vec::new();
    for n in 0..40 {
        rows.push(write(&bodies, messages(10 + n, 400)).await?);
        bodies.read(rows[n].clone()).await?;
        // The first one is used again and again.
        bodies.read(rows[0].clone()).await?;
        let on_disk: u64 = entries(&path)?.iter().map(|(_, bytes)| bytes).sum();
        assert!(on_disk <= max_bytes && on_disk == cache.bytes(), "{on_disk}");
    }
    let is_cached = |row: &BodyRow| path.join(&row.sha256).exists();
    assert!(is_cached(&rows[0]) && is_cached(&rows[39]) && !is_cached(&rows[1]));
    // A smaller bound drops the oldest at the start.
    drop((bodies, cache));
    let cache = BodyCache::open(&path, 50_000)?;
    assert!(cache.bytes() <= 50_000 && is_cached(&rows[0]));
    // What is too large for it is read without it.
    let large = messages(50, 1000);
    let bodies = bodies_in(&bucket, Some(cache));
    let row = write(&bodies, large.clone()).await?;
    assert_eq!(texts(&bodies.read(row.clone()).await?), texts(&large));
    assert!(!is_cached(&row));
    Ok(())
}

#[tokio::test]
async fn another_process_is_kept_out() -> Result {
    let dir = tempfile::tempdir()?;
    let cache = BodyCache::open(dir.path(), 1000)?;
    let refused = BodyCache::open(dir.path(), 1000).expect_err("it is in use");
    assert_eq!(refused.kind, ErrorKind::Conflict);
    drop(cache);
    BodyCache::open(dir.path(), 1000)?;
    Ok(())
}
