//! A session that is written is read, whole and by pages, and grows into another object.

use chorus_proto::ErrorKind;
use chorus_session::MessageHash;
use chorus_session_objects::{BodyKey, BodyRow, NewBody, SessionBodies as _};

use super::*;

#[tokio::test]
async fn a_body_is_read_whole_and_by_pages() -> Result {
    let dir = tempfile::tempdir()?;
    for bucket in buckets(dir.path())? {
        let bodies = bodies_in(&bucket, None);
        for (count, bytes) in [(0, 0), (1, 10), (64, 10), (1000, 300), (20, 100_000)] {
            let written = messages(count, bytes);
            let row = write(&bodies, written.clone()).await?;
            assert_eq!(row.sha256, MessageHash::from_messages(texts(&written)).finish());
            assert_eq!(texts(&bodies.read(row.clone()).await?), texts(&written));
            for (first, page) in [(0, 50), (1, 1), (63, 2), (500, 50), (990, 50), (1000, 5), (0, 2000)] {
                let read = bodies.page(row.clone(), first as u64, page as u64).await?;
                let expected: Vec<_> = written.iter().skip(first).take(page).cloned().collect();
                assert_eq!(texts(&read), texts(&expected), "{page} from {first} of {count} in {bucket:?}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_body_grows_into_another_object_and_the_former_one_stays_until_it_is_deleted() -> Result {
    let dir = tempfile::tempdir()?;
    for bucket in buckets(dir.path())? {
        let bodies = bodies_in(&bucket, None);
        let all = messages(300, 200);
        let body = new_body(all[..200].to_vec());
        let first = bodies.write(body.clone()).await?.row;
        let added = NewBody { epoch: 8, messages: all[150..].to_vec(), ..body.clone() };
        let grown = bodies.grow(first.clone(), 150, added.clone()).await?.row;
        assert_eq!(texts(&bodies.read(grown.clone()).await?), texts(&all));
        assert_eq!(texts(&bodies.read(first.clone()).await?), texts(&all[..200]));
        let key = BodyKey::parse(&prefix(), &grown.key).expect("the key of a body");
        assert_eq!((key.agent, key.session, key.epoch), (body.agent, body.session, 8));
        let refused = bodies.grow(first.clone(), 201, added).await.expect_err("it has 200");
        assert_eq!(refused.kind, ErrorKind::InvalidParams);
        bodies.delete(first.clone()).await?;
        bodies.delete(first.clone()).await?;
        assert_eq!(bodies.read(first).await.expect_err("deleted").kind, ErrorKind::SessionNotFound);
        assert_eq!(texts(&bodies.read(grown).await?), texts(&all));
    }
    Ok(())
}

#[tokio::test]
async fn rows_are_recovered_from_the_list() -> Result {
    let dir = tempfile::tempdir()?;
    for bucket in buckets(dir.path())? {
        let bodies = bodies_in(&bucket, None);
        bucket.put_new(&format!("chorus/test/agents/{}/notes", Uuid::nil()), "not a body".into()).await?;
        let mut rows = Vec::new();
        for count in [0, 1, 70] {
            rows.push(write(&bodies, messages(count, 100)).await?);
        }
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        let found = bodies.list(None).await?;
        let mut recovered = Vec::new();
        for found in found.clone() {
            recovered.push(bodies.recover(found).await?);
        }
        assert_eq!(recovered, rows);
        let after = bodies.list(Some(rows[0].key.clone())).await?;
        assert_eq!(after, found[1..]);
        assert!(bodies.list(Some(rows[2].key.clone())).await?.is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn an_object_that_was_changed_is_refused() -> Result {
    let dir = tempfile::tempdir()?;
    let bucket = directory(dir.path())?;
    let bodies = bodies_in(&bucket, None);
    let written = messages(200, 100);
    let row = write(&bodies, written.clone()).await?;
    let path = dir.path().join("shared").join(&row.key);
    let good = std::fs::read(&path)?;
    let body = usize::try_from(row.body_bytes)?;
    let is_corrupt = |error: chorus_base::error::Error| error.kind == ErrorKind::CorruptSession;
    // In the first block, in the index, and cut off.
    let changed = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    for (bytes, page_is_read) in [(changed(60), true), (changed(body + 20), false), (good[..body].to_vec(), false)] {
        std::fs::write(&path, &bytes)?;
        let page = bodies.page(row.clone(), 150, 10).await;
        match page_is_read {
            true => assert_eq!(texts(&page?), texts(&written[150..160])),
            false => assert!(page.is_err_and(is_corrupt)),
        }
        let recovered = bodies.recover(bodies.list(None).await?.remove(0)).await;
        assert!(recovered.is_err_and(is_corrupt));
    }
    std::fs::write(&path, changed(60))?;
    assert!(bodies.read(row.clone()).await.is_err_and(is_corrupt));
    assert!(bodies.page(row.clone(), 0, 10).await.is_err_and(is_corrupt));
    std::fs::write(&path, &good)?;
    let other = BodyRow { messages: 199, ..row.clone() };
    assert!(bodies.read(other.clone()).await.is_err_and(is_corrupt));
    assert!(bodies.page(other, 0, 10).await.is_err_and(is_corrupt));
    assert_eq!(texts(&bodies.read(row).await?), texts(&written));
    Ok(())
}

#[tokio::test]
async fn a_page_of_a_large_session_fetches_little() -> Result {
    let Some(node) = Proxied::start().await? else { return Ok(()) };
    let row = write(&node.bodies, messages(5000, 1000)).await?;
    let before = node.bucket.received_bytes();
    drop(node.proxy.take_seen());
    assert_eq!(node.bodies.page(row.clone(), 2500, 50).await?.len(), 50);
    let (fetched, seen) = (node.bucket.received_bytes() - before, node.proxy.take_seen());
    // The index, and at most two blocks of 64 messages.
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!(seen.iter().map(|request| request.answer_bytes as u64).sum::<u64>(), fetched);
    assert!(fetched < 2 * 64 * 1100 + (row.object_bytes - row.body_bytes), "{fetched} of {}", row.object_bytes);
    Ok(())
}
