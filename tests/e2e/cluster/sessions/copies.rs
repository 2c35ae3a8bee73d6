//! The files of sessions as copies of rows and bodies.

use std::fs;
use std::sync::Arc;

use chorus_base::Secret;
use chorus_clock::Clock;
use chorus_proto::ErrorKind;
use chorus_session_objects::{Prefix, RetryPolicy, S3Bucket, S3Key, S3Settings};
use chorus_store::SharedBodies as _;
use chorus_tests::http_fault_proxy::HttpFaultProxy;
use chorus_tests::postgres::Database;
use chorus_tests::s3_server::TestBucket;
use uuid::Uuid;

use super::node::Node;
use super::{Pair, Result, claim, header, messages, texts};

#[tokio::test]
async fn a_node_that_takes_an_agent_over_reads_its_sessions() -> Result {
    let Some(pair) = Pair::start().await? else { return Ok(()) };
    let header = header(pair.agent, "2027-01-15_one", 3);
    pair.a.save(&header, &messages(3, 10)).await?;
    let read_on_a = pair.a.read(header.id).await?;
    pair.move_agent(&pair.a, &pair.b).await?;
    assert!(!pair.b.path(&header).exists());
    // With its notes, which are in the header.
    assert_eq!(read_on_a.0.working_set.pinned_facts[0].text, "a pinned fact");
    assert_eq!(pair.b.read(header.id).await?, read_on_a);
    assert_eq!(fs::read(pair.b.path(&header))?, fs::read(pair.a.path(&header))?, "both files are the same");
    let row = pair.b.row(header.id).await?;
    let stamp = chorus_store::session_files::stamp(&pair.b.path(&header).metadata()?);
    assert_eq!(row.file_stamp, stamp);
    // Now without the bucket.
    let _away = pair.take_bucket_away()?;
    assert_eq!(pair.b.read(header.id).await?.1.len(), 3);
    fs::remove_file(pair.b.path(&header))?;
    let failed = pair.b.store.local_file(&row, &pair.b.dir()).await.expect_err("no copy and no bucket");
    assert_eq!(failed.kind, ErrorKind::StorageFailed, "{failed:?}");
    Ok(())
}

#[tokio::test]
async fn a_title_that_was_changed_elsewhere_comes_back_without_the_bucket() -> Result {
    let Some(pair) = Pair::start().await? else { return Ok(()) };
    let header = header(pair.agent, "2027-01-15_one", 3);
    pair.a.save(&header, &messages(3, 10)).await?;
    pair.move_agent(&pair.a, &pair.b).await?;
    // Neither the change nor the way back needs the messages.
    let _away = pair.take_bucket_away()?;
    let retitle = |header: &mut chorus_proto::SessionHeader| header.description = Some("another title".to_owned());
    let changed = pair.b.store.update_session_header(header.id, pair.b.dir(), retitle).await?;
    assert_eq!((changed.header.description.as_deref(), &*changed.file_stamp), (Some("another title"), ""));
    assert!(!pair.b.path(&header).exists());
    pair.move_agent(&pair.b, &pair.a).await?;
    pair.forget_stamp(header.id).await?;
    let (read, all) = pair.a.read(header.id).await?;
    assert_eq!((read.description.as_deref(), all), (Some("another title"), texts(&messages(3, 10))));
    Ok(())
}

#[tokio::test]
async fn many_requests_for_one_session_fetch_it_once() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let Some(s3) = OnS3::start(&database).await? else { return Ok(()) };
    let header = header(s3.agent, "2027-01-15_one", 3);
    s3.a.save(&header, &messages(3, 10)).await?;
    s3.move_agent().await?;
    let _ = s3.proxy.take_seen();
    let reads = futures_util::future::try_join_all((0..20).map(|_| s3.b.read(header.id))).await?;
    assert!(reads.iter().all(|(_, read)| read.len() == 3));
    assert_eq!(s3.proxy.take_seen().len(), 1);
    Ok(())
}

#[tokio::test]
async fn pages_of_a_large_session_fetch_little_and_copy_nothing() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let Some(s3) = OnS3::start(&database).await? else { return Ok(()) };
    let header = header(s3.agent, "2027-01-15_large", 5_000);
    let row = s3.a.save(&header, &messages(5_000, 2_000)).await?;
    let bytes = row.body.as_ref().ok_or("no body")?.body_bytes;
    s3.move_agent().await?;
    let row = s3.b.row(header.id).await?;
    let body = s3.b.store.body_to_page(&row, &s3.b.dir()).ok_or("a large session that is not here")?;
    let _ = s3.proxy.take_seen();
    let page = s3.b.shared.page(body, 4_990, 50).await?;
    assert_eq!(texts(&page), texts(&messages(5_000, 2_000)[4_990..]));
    let fetched: usize = s3.proxy.take_seen().iter().map(|request| request.answer_bytes).sum();
    assert!(bytes > 10_000_000 && fetched < 400_000, "{fetched} of {bytes} bytes");
    assert!(!s3.b.path(&header).exists());
    // It is not paged where it is.
    assert_eq!(s3.a.store.body_to_page(&s3.a.row(header.id).await?, &s3.a.dir()), None);
    Ok(())
}

/// Two nodes whose bucket is on a real server, behind a proxy that counts.
struct OnS3 {
    a: Node,
    b: Node,
    agent: Uuid,
    proxy: HttpFaultProxy,
}

impl OnS3 {
    async fn start(database: &Database) -> Result<Option<Self>> {
        let Some(bucket) = TestBucket::create() else { return Ok(None) };
        let proxy = HttpFaultProxy::start(bucket.port).await?;
        let settings = S3Settings {
            endpoint: Some(S3Settings::check_endpoint(&proxy.endpoint(), None)?),
            region: "us-east-1".into(),
            bucket: bucket.name.clone(),
            prefix: Prefix::new("")?,
            path_style: true,
            key: S3Key { id: "key".into(), secret: Secret::new("a-secret-of-tests".into()) },
        };
        let nowhere = std::path::Path::new("");
        let node = async |name| {
            let bucket = Arc::new(S3Bucket::new(&settings, RetryPolicy::default(), Clock::system())?);
            Node::start_on(database, name, (bucket, nowhere), u64::MAX).await
        };
        let (a, b, agent) = (node("a").await?, node("b").await?, Uuid::new_v4());
        for node in [&a, &b] {
            node.add_agent(agent).await?;
        }
        claim(&a.journal, agent).await?;
        Ok(Some(Self { a, b, agent, proxy }))
    }

    async fn move_agent(&self) -> Result {
        self.a.journal.release(self.agent).await?;
        claim(&self.b.journal, self.agent).await?;
        Ok(())
    }
}
