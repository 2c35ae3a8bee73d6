//! Bench: writing and reading a session as an object, compared with a bare PUT and GET of the same bytes on the same server, and
//! the bytes that one page of a large session fetches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chorus_base::Secret;
use chorus_clock::Clock;
use chorus_session::stored_message::StoredMessage;
use chorus_session_objects::{
    BodyCache, BodyKey, Bucket as _, NewBody, ObjectBodies, Prefix, RetryPolicy, S3Bucket, S3Key, S3Settings,
    SessionBodies as _,
};
use chorus_tests::measure::{Measurement, median, print_report, use_realtime_scheduler};
use chorus_tests::s3_server::TestBucket;
use uuid::Uuid;

type Result<T = (), E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// Messages of the session that is written and read.
const MESSAGES: usize = 10_000;
const ROUNDS: usize = 15;
/// Messages of the session that is paged.
const LARGE: usize = 100_000;
const PAGE: u64 = 50;

fn messages(count: usize) -> Result<Vec<StoredMessage>> {
    let text = "x".repeat(1024);
    let json =
        |n: usize| format!(r#"{{"id":"{n}","role":"user","content":"{text}","timestamp":"2027-01-15T08:00:00Z"}}"#);
    Ok((0..count).map(|n| StoredMessage::parse(json(n).into())).collect::<Result<_, _>>()?)
}

fn new_body(messages: &[StoredMessage]) -> NewBody {
    NewBody { agent: Uuid::nil(), session: Uuid::new_v4(), epoch: 1, messages: messages.to_vec() }
}

async fn write_and_read(bucket: &S3Bucket, bodies: &ObjectBodies, prefix: &Prefix) -> Result {
    let messages = messages(MESSAGES)?;
    let mut times: [Vec<Duration>; 4] = Default::default();
    for round in 0..=ROUNDS {
        let body = new_body(&messages);
        let begun = Instant::now();
        let row = bodies.write(body).await?.row;
        let written = begun.elapsed();
        let object = bucket.get(&row.key).await?.unwrap_or_default();
        let key = BodyKey { agent: Uuid::nil(), session: Uuid::nil(), epoch: 1, write: Uuid::new_v4() }.to_text(prefix);
        let begun = Instant::now();
        bucket.put_new(&key, object.clone()).await?;
        let put = begun.elapsed();
        let begun = Instant::now();
        let bytes = bucket.get(&key).await?.unwrap_or_default().len();
        let got = begun.elapsed();
        let begun = Instant::now();
        let read = bodies.read(row.clone()).await?.len();
        let ours = begun.elapsed();
        assert!(read == MESSAGES && bytes == object.len(), "all of it was read");
        bucket.delete(&key).await?;
        bodies.delete(row).await?;
        if round > 0 {
            for (times, time) in times.iter_mut().zip([put, written, got, ours]) {
                times.push(time);
            }
        }
    }
    let [put, written, got, read] = times.map(median);
    let report = |name: String, floor, ours, target| print_report(Measurement { name, floor, ours, target });
    report(format!("write {MESSAGES} messages, to a bare PUT"), put, written, 1.3);
    report(format!("read {MESSAGES} messages, to a bare GET"), got, read, 1.3);
    Ok(())
}

async fn page(bucket: &Arc<S3Bucket>, bodies: &ObjectBodies, prefix: &Prefix) -> Result {
    let row = bodies.write(new_body(&messages(LARGE)?)).await?.row;
    let dir = tempfile::tempdir()?;
    let cache = BodyCache::open(dir.path(), 64 << 20)?;
    let cached = ObjectBodies::new(bucket.clone(), prefix.clone(), Some(cache), Clock::system());
    for (name, first) in
        [("first page", 50_000), ("next page", 50_050), ("the same page", 50_050), ("last page", 99_950)]
    {
        let (before, begun) = (bucket.received_bytes(), Instant::now());
        assert_eq!(cached.page(row.clone(), first, PAGE).await?.len() as u64, PAGE);
        let (fetched, time) = (bucket.received_bytes() - before, begun.elapsed());
        print_report(format!(
            "{PAGE} of {LARGE} messages, {name}: {fetched} of {} bytes, {time:.3?}",
            row.object_bytes
        ));
    }
    Ok(bodies.delete(row).await?)
}

async fn run() -> Result {
    let Some(server) = TestBucket::create() else { return Ok(()) };
    let prefix = Prefix::new("bench")?;
    let settings = S3Settings {
        endpoint: Some(S3Settings::check_endpoint(&server.endpoint(), None)?),
        region: "us-east-1".into(),
        bucket: server.name,
        prefix: prefix.clone(),
        path_style: true,
        key: S3Key { id: "key".into(), secret: Secret::new("secret".into()) },
    };
    let bucket = Arc::new(S3Bucket::new(&settings, RetryPolicy::default(), Clock::system())?);
    let bodies = ObjectBodies::new(bucket.clone(), prefix.clone(), None, Clock::system());
    write_and_read(&bucket, &bodies, &prefix).await?;
    page(&bucket, &bodies, &prefix).await
}

fn main() -> Result {
    use_realtime_scheduler();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run())
}
