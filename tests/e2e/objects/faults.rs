//! Faults of the server and of the network.

use chorus_proto::ErrorKind;
use chorus_session_objects::{PutOutcome, SessionBodies as _};

use chorus_tests::http_fault_proxy::HttpFault;

use super::*;

const PASSING: [HttpFault; 6] = [
    HttpFault::Status(500),
    HttpFault::Status(503),
    HttpFault::Status(429),
    HttpFault::SlowDown(1),
    HttpFault::LoseAnswer,
    HttpFault::Silence,
];

#[tokio::test]
async fn the_server_refuses_a_second_write_of_a_key() -> Result {
    let Some(bucket) = TestBucket::create() else { return Ok(()) };
    assert!(bucket.put("a", "If-None-Match: *", b"first").contains(" 200 "));
    assert!(bucket.put("a", "If-None-Match: *", b"second").contains(" 412 "), "the server ignores If-None-Match");
    assert!(bucket.put("a", "X-Other: 1", b"third").contains(" 200 "), "the header is the reason");
    Ok(())
}

#[tokio::test]
async fn what_passes_is_repeated_and_each_body_is_there_once() -> Result {
    let Some(node) = Proxied::start().await? else { return Ok(()) };
    let written = messages(100, 100);
    let mut rows = Vec::new();
    for fault in PASSING {
        node.proxy.fail("PUT", &[fault]);
        rows.push(write(&node.bodies, written.clone()).await?);
        node.proxy.fail("PUT", &[fault, HttpFault::Status(500), fault]);
        rows.push(write(&node.bodies, written.clone()).await?);
    }
    for (row, fault) in rows.iter().zip(PASSING.iter().cycle()) {
        node.proxy.fail("GET", &[*fault, HttpFault::HalfBody]);
        assert_eq!(texts(&node.bodies.read(row.clone()).await?), texts(&written));
        node.proxy.fail("GET", &[HttpFault::HalfBody, *fault, HttpFault::HalfBody]);
        assert_eq!(node.bodies.page(row.clone(), 10, 50).await?.len(), 50);
    }
    assert_eq!(node.proxy.pending_faults(), 0);
    assert_eq!(node.bodies.list(None).await?.len(), rows.len());
    for row in rows {
        node.proxy.fail("DELETE", &[HttpFault::LoseAnswer, HttpFault::Status(500)]);
        node.bodies.delete(row).await?;
    }
    assert_eq!(node.proxy.pending_faults(), 0);
    assert!(node.bodies.list(None).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_request_is_repeated_a_few_times_with_longer_waits() -> Result {
    let Some(node) = Proxied::start().await? else { return Ok(()) };
    node.proxy.fail("PUT", &[HttpFault::Status(503); 4]);
    node.proxy.fail("GET", &[HttpFault::Status(503); 4]);
    let refused = write(&node.bodies, messages(1, 1)).await.expect_err("four times 503");
    assert!(!format!("{refused:?}").contains("a-secret-of-tests"));
    let waits: Vec<u128> = node.clock.take_waits().iter().map(Duration::as_millis).collect();
    assert_eq!(waits.len(), 6, "three for the PUT, three for the GET that was to settle it: {waits:?}");
    for (wait, (least, most)) in waits.iter().zip([(50, 100), (100, 200), (200, 400)].iter().cycle()) {
        assert!((*least..=*most).contains(wait), "{waits:?}");
    }
    let seen = node.proxy.take_seen();
    assert_eq!(seen.iter().filter(|request| request.method == "PUT").count(), 4);
    node.proxy.fail("PUT", &[HttpFault::SlowDown(1), HttpFault::SlowDown(3600)]);
    write(&node.bodies, messages(1, 1)).await?;
    assert_eq!(node.clock.take_waits(), [Duration::from_secs(1), POLICY.longest_wait]);
    Ok(())
}

#[tokio::test]
async fn a_request_that_is_refused_is_not_repeated() -> Result {
    let Some(node) = Proxied::start().await? else { return Ok(()) };
    node.proxy.fail("PUT", &[HttpFault::Status(403)]);
    let refused = node.bodies.write(new_body(messages(1, 1))).await.expect_err("403");
    assert_eq!(refused.kind, ErrorKind::Denied);
    assert_eq!(node.proxy.take_seen().len(), 1);
    assert!(node.clock.take_waits().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_lost_answer_is_settled_by_reading_the_object() -> Result {
    let Some(node) = Proxied::start().await? else { return Ok(()) };
    // The PUT came through, its answer did not, and no repetition is answered either.
    node.proxy
        .fail("PUT", &[HttpFault::LoseAnswer, HttpFault::Status(500), HttpFault::Status(500), HttpFault::Status(500)]);
    let row = write(&node.bodies, messages(10, 10)).await?;
    let methods: Vec<String> = node.proxy.take_seen().into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["PUT", "PUT", "PUT", "PUT", "GET"]);
    assert_eq!(texts(&node.bodies.read(row.clone()).await?), texts(&messages(10, 10)));
    // The repetition finds what the first attempt wrote.
    drop(node.proxy.take_seen());
    node.proxy.fail("PUT", &[HttpFault::LoseAnswer]);
    write(&node.bodies, messages(10, 10)).await?;
    let methods: Vec<String> = node.proxy.take_seen().into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["PUT", "PUT", "GET"]);
    // A PUT that never came through fails.
    node.proxy.fail("PUT", &[HttpFault::Status(500); 4]);
    let failed = node.bodies.write(new_body(messages(1, 1))).await.expect_err("nothing was written");
    assert_eq!(failed.kind, ErrorKind::StorageUnavailable);
    assert_eq!(node.bodies.list(None).await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn an_object_of_another_writer_is_never_replaced() -> Result {
    let dir = tempfile::tempdir()?;
    for bucket in buckets(dir.path())? {
        assert_eq!(bucket.put_new("a/b", "first".into()).await?, PutOutcome::Created);
        assert_eq!(bucket.put_new("a/b", "second".into()).await?, PutOutcome::Exists);
        assert_eq!(bucket.get("a/b").await?, Some("first".into()));
        let writes = (0..8).map(|n| {
            let bucket = bucket.clone();
            async move { bucket.put_new("a/c", format!("writer {n}").into()).await }
        });
        let outcomes: Vec<_> = futures_util::future::try_join_all(writes).await?;
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == PutOutcome::Created).count(), 1, "{bucket:?}");
    }
    Ok(())
}

#[tokio::test]
async fn wrong_content_is_read_again_and_refused_if_it_stays_wrong() -> Result {
    let Some(node) = Proxied::start().await? else { return Ok(()) };
    let written = messages(500, 100);
    let row = write(&node.bodies, written.clone()).await?;
    node.proxy.fail("GET", &[HttpFault::WrongContent]);
    assert_eq!(texts(&node.bodies.read(row.clone()).await?), texts(&written));
    // The index, then a block.
    node.proxy.fail("GET", &[HttpFault::WrongContent]);
    assert_eq!(node.bodies.page(row.clone(), 400, 10).await?.len(), 10);
    node.proxy.fail("GET", &[HttpFault::WrongContent; 2]);
    let refused = node.bodies.page(row.clone(), 400, 10).await.expect_err("the index is wrong twice");
    assert_eq!(refused.kind, ErrorKind::CorruptSession);
    node.proxy.fail("GET", &[HttpFault::WrongContent; 2]);
    let refused = node.bodies.read(row.clone()).await.expect_err("the body is wrong twice");
    assert_eq!(refused.kind, ErrorKind::CorruptSession);
    assert_eq!(node.proxy.pending_faults(), 0);
    Ok(())
}
