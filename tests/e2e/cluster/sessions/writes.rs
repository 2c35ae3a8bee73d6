//! Writes of sessions: the body comes before the row.

use std::sync::Arc;

use chorus_proto::ErrorKind;
use chorus_store::message_spool::MessageSpool;
use chorus_store::{GrowthResult, HeaderChange};

use super::{Pair, Result, header, messages, objects, texts, wait_for_objects};

#[tokio::test]
async fn a_row_names_an_object_with_the_messages_of_its_file() -> Result {
    let Some(pair) = Pair::start().await? else { return Ok(()) };
    let header = header(pair.agent, "2027-01-15_one", 3);
    let row = pair.a.save(&header, &messages(3, 10)).await?;
    let body = row.body.ok_or("the row names no body")?;
    assert_eq!((body.messages, &body.sha256), (3, &row.sha256));
    assert!(body.key.contains(&format!("{}/{}/{:016x}-", pair.agent, header.id, 1)), "{}", body.key);
    assert_eq!(objects(&pair.a.bucket), [pair.a.bucket.join(&body.key)]);
    pair.a.store.catalog.sessions.delete(header.id).await?;
    wait_for_objects(&pair, 0).await?;
    Ok(())
}

#[tokio::test]
async fn nothing_is_written_for_an_agent_of_another_node() -> Result {
    let Some(pair) = Pair::start().await? else { return Ok(()) };
    let header = header(pair.agent, "2027-01-15_one", 3);
    let refused = pair.b.save(&header, &messages(3, 10)).await.expect_err("b owns nothing");
    assert!(refused.to_string().contains("another node"), "{refused}");
    assert_eq!(objects(&pair.a.bucket).len(), 0);
    Ok(())
}

#[tokio::test]
async fn a_save_whose_bucket_is_down_fails_and_the_next_one_succeeds() -> Result {
    let Some(pair) = Pair::start().await? else { return Ok(()) };
    let (kept, new) = (header(pair.agent, "2027-01-15_kept", 2), header(pair.agent, "2027-01-15_new", 3));
    pair.a.save(&kept, &messages(2, 10)).await?;
    {
        let _away = pair.take_bucket_away()?;
        let failed = pair.a.save(&new, &messages(3, 10)).await.expect_err("no bucket");
        let failed = failed.downcast::<chorus_base::error::Error>().map_err(|e| e.to_string())?;
        assert_eq!((failed.kind, failed.fatal), (ErrorKind::StorageFailed, false), "{failed:?}");
        assert!(failed.message.contains("the messages of 2027-01-15_new cannot be stored"), "{}", failed.message);
        assert!(failed.hint.as_deref().is_some_and(|hint| hint.contains("nothing is lost")), "{failed:?}");
        assert!(pair.a.store.catalog.sessions.get(new.id).await?.is_none());
        // What is on this machine can be read.
        assert_eq!(pair.a.read(kept.id).await?.1.len(), 2);
    }
    pair.a.save(&new, &messages(3, 10)).await?;
    assert_eq!(objects(&pair.a.bucket).len(), 2);
    Ok(())
}

#[tokio::test]
async fn growth_writes_the_whole_body_again_and_deletes_the_former_one() -> Result {
    let Some(pair) = Pair::start().await? else { return Ok(()) };
    let header = header(pair.agent, "2027-01-15_one", 3);
    let before = pair.a.save(&header, &messages(3, 10)).await?;
    pair.move_agent(&pair.a, &pair.b).await?;
    let dir = tempfile::tempdir()?;
    let mut spool = MessageSpool::new(dir.path())?;
    for message in messages(5, 10) {
        spool.append(message.json())?;
    }
    let change = HeaderChange {
        grown: Some(Arc::new(|header, _| header.message_count = 5)),
        is_in_use: Arc::new(|| false),
        same: Arc::new(|_| ()),
        usage: None,
    };
    // The file is not on b yet.
    let grown = pair
        .b
        .store
        .grow_session(header.id, pair.b.dir(), Arc::new(spool.finish()?), Arc::new(|_| None), change)
        .await?;
    assert!(matches!(grown, GrowthResult::Grown { kept: 3, .. }), "{grown:?}");
    let after = pair.b.row(header.id).await?;
    let body = after.body.ok_or("no body")?;
    assert_eq!((body.messages, &body.sha256), (5, &after.sha256));
    assert_ne!(Some(&body.key), before.body.as_ref().map(|body| &body.key));
    wait_for_objects(&pair, 1).await?;
    pair.move_agent(&pair.b, &pair.a).await?;
    pair.forget_stamp(header.id).await?;
    assert_eq!(pair.a.read(header.id).await?.1, texts(&messages(5, 10)), "the copy on a was out of date");
    Ok(())
}
