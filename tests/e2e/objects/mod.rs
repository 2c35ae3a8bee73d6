//! Session bodies as objects, in a directory and on a real server that speaks S3.

mod bodies;
mod cache;
mod faults;
mod probe;
mod sweep;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::Secret;
use chorus_base::Ticks;
use chorus_base::sync::Mutex;
use chorus_clock::{Clock, TimeSource};
use chorus_session::stored_message::StoredMessage;
use chorus_session_objects::{
    BodyCache, BodyRow, Bucket, DirectoryBucket, NewBody, ObjectBodies, Prefix, RetryPolicy, S3Bucket, S3Key,
    S3Settings, SessionBodies as _,
};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use uuid::Uuid;

use chorus_tests::http_fault_proxy::{ANSWER_TIMEOUT, HttpFaultProxy};
use chorus_tests::s3_server::TestBucket;

type Result<T = (), E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// A clock on which nobody waits: each sleep moves it, and is recorded.
#[derive(Debug, Clone, Default)]
struct JumpingClock(Arc<Mutex<(i64, Vec<Duration>)>>);

impl JumpingClock {
    fn clock(&self) -> Clock {
        Clock::new(self.clone())
    }

    fn take_waits(&self) -> Vec<Duration> {
        std::mem::take(&mut self.0.lock().1)
    }
}

impl TimeSource for JumpingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap_or_default()
    }

    fn ticks(&self) -> Ticks {
        Ticks(self.0.lock().0)
    }

    fn sleep_until(&self, at: Ticks) -> BoxFuture<'_, ()> {
        let mut state = self.0.lock();
        let wait = at.since(Ticks(state.0));
        state.0 = at.0;
        state.1.push(wait);
        Box::pin(std::future::ready(()))
    }
}

fn prefix() -> Prefix {
    Prefix::new("chorus/test").expect("a prefix")
}

const POLICY: RetryPolicy = RetryPolicy {
    attempts: 4,
    first_wait: Duration::from_millis(100),
    longest_wait: Duration::from_secs(2),
    first_timeout: ANSWER_TIMEOUT,
    longest_timeout: ANSWER_TIMEOUT,
};

fn s3(endpoint: &str, bucket: &str, policy: RetryPolicy, clock: Clock) -> Result<S3Bucket> {
    let settings = S3Settings {
        endpoint: Some(S3Settings::check_endpoint(endpoint, None)?),
        region: "us-east-1".into(),
        bucket: bucket.into(),
        prefix: prefix(),
        path_style: true,
        key: S3Key { id: "key".into(), secret: Secret::new("a-secret-of-tests".into()) },
    };
    Ok(S3Bucket::new(&settings, policy, clock)?)
}

fn directory(dir: &Path) -> Result<Arc<dyn Bucket>> {
    Ok(Arc::new(DirectoryBucket::open(&dir.join("shared"))?))
}

/// The buckets that a test of any bucket runs on: a directory, and a server if one is installed.
fn buckets(dir: &Path) -> Result<Vec<Arc<dyn Bucket>>> {
    let mut buckets = vec![directory(dir)?];
    if let Some(bucket) = TestBucket::create() {
        buckets.push(Arc::new(s3(&bucket.endpoint(), &bucket.name, RetryPolicy::default(), Clock::system())?));
    }
    Ok(buckets)
}

/// A bucket behind a proxy, with the clock on which its client waits.
struct Proxied {
    proxy: HttpFaultProxy,
    clock: JumpingClock,
    bucket: Arc<S3Bucket>,
    bodies: ObjectBodies,
}

impl Proxied {
    /// Makes one; `None` if no server is installed.
    async fn start() -> Result<Option<Self>> {
        let Some(bucket) = TestBucket::create() else { return Ok(None) };
        let proxy = HttpFaultProxy::start(bucket.port).await?;
        let clock = JumpingClock::default();
        let bucket = Arc::new(s3(&proxy.endpoint(), &bucket.name, POLICY, clock.clock())?);
        let bodies = ObjectBodies::new(bucket.clone(), prefix(), None, clock.clock());
        Ok(Some(Self { proxy, clock, bucket, bodies }))
    }
}

fn bodies_in(bucket: &Arc<dyn Bucket>, cache: Option<BodyCache>) -> ObjectBodies {
    ObjectBodies::new(bucket.clone(), prefix(), cache, Clock::system())
}

/// Messages with numbers as texts, of about `bytes` bytes each.
fn messages(count: usize, bytes: usize) -> Vec<StoredMessage> {
    let text = "x".repeat(bytes);
    let json =
        |n: usize| format!(r#"{{"id":"{n}","role":"user","content":"{n} {text}","timestamp":"2027-01-15T08:00:00Z"}}"#);
    (0..count).map(|n| StoredMessage::parse(json(n).into()).expect("a message")).collect()
}

fn new_body(messages: Vec<StoredMessage>) -> NewBody {
    NewBody { agent: Uuid::new_v4(), session: Uuid::new_v4(), epoch: 7, messages }
}

async fn write(bodies: &ObjectBodies, messages: Vec<StoredMessage>) -> Result<BodyRow> {
    Ok(bodies.write(new_body(messages)).await?.row)
}

fn texts(messages: &[StoredMessage]) -> Vec<&[u8]> {
    messages.iter().map(|message| &message.json()[..]).collect()
}
