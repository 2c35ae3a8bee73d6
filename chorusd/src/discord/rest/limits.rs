//! How many requests Discord takes, as its answers say: by bucket, for all together, and how many that were refused.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::error::RestError;
use super::path::Path;

/// Requests a second; Discord takes 50.
const PER_SECOND: usize = 45;
const SECOND: Duration = Duration::from_secs(1);
/// Requests within [`INVALID_WINDOW`] that may be refused; Discord bars an address after 10,000.
const INVALID: usize = 1_000;
const INVALID_WINDOW: Duration = Duration::from_secs(600);
/// What is known of more buckets is looked through for what may be forgotten.
const MANY: usize = 1_024;
/// Until it is known how many a bucket takes, one goes at a time. It is looked at again after this.
const LEARNING: Duration = Duration::from_secs(1);

/// What is known of all of them.
#[derive(Debug, Default)]
pub struct Limits {
    known: Mutex<Known>,
    /// Somebody who waits may go sooner than was thought.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Known {
    /// Routes that share a bucket have one name for it.
    names: HashMap<String, String>,
    buckets: HashMap<(String, String), Bucket>,
    /// When requests were sent, of the last second.
    sent: VecDeque<Instant>,
    /// When requests were refused.
    invalid: VecDeque<Instant>,
    /// Nothing goes before.
    global: Option<Instant>,
}

#[derive(Debug, Default, Clone)]
struct Bucket {
    /// `None`: no answer has said.
    limit: Option<u32>,
    remaining: u32,
    reset: Option<Instant>,
    under_way: u32,
}

/// Why a request has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// For this time.
    Until { at: Instant, global: bool },
    /// For the answer to another.
    Answer,
}

/// Leave to send one request. Dropped, the request is over.
#[derive(Debug)]
pub struct Pass<'l> {
    limits: &'l Limits,
    bucket: (String, String),
    route: String,
    exempt: bool,
}

impl Limits {
    /// Waits for its turn, until `latest` at most.
    ///
    /// # Errors
    /// `Limited`: its turn is later.
    pub async fn turn(&self, path: &Path, latest: Option<Instant>) -> Result<Pass<'_>, RestError> {
        loop {
            // Before looking, so that no change is missed.
            let changed = self.changed.notified();
            let now = Instant::now();
            let wait = match self.known().ask(path, now) {
                Ok(bucket) => {
                    return Ok(Pass { limits: self, bucket, route: path.route.clone(), exempt: path.exempt });
                }
                Err(wait) => wait,
            };
            let (at, global) = match wait {
                Wait::Until { at, global } => (at, global),
                Wait::Answer => (now + LEARNING, false),
            };
            if wait != Wait::Answer && latest.is_some_and(|latest| at > latest) {
                return Err(RestError::Limited { after: at - now, global });
            }
            let until = latest.map_or(at, |latest| at.min(latest));
            if timeout_at(until, changed).await.is_err() && latest.is_some_and(|latest| Instant::now() >= latest) {
                return Err(RestError::Limited { after: at.saturating_duration_since(Instant::now()), global });
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    /// Learns from the answer; `refused` is what it said instead of doing it.
    pub fn heard(&self, status: StatusCode, headers: &HeaderMap, refused: Option<&RestError>) {
        let now = Instant::now();
        let mut known = self.limits.known();
        let shared = text(headers, "x-ratelimit-scope") == Some("shared");
        let invalid = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS];
        if invalid.contains(&status) && !shared {
            known.invalid.push_back(now);
        }
        if self.exempt {
            return;
        }
        if let Some(name) = text(headers, "x-ratelimit-bucket") {
            known.names.insert(self.route.clone(), name.to_owned());
        }
        // It may have another name since.
        let name = known.names.get(&self.route).unwrap_or(&self.route).clone();
        let bucket = known.buckets.entry((name, self.bucket.1.clone())).or_default();
        if let (Some(limit), Some(remaining), Some(after)) = (
            number(headers, "x-ratelimit-limit"),
            number(headers, "x-ratelimit-remaining"),
            number(headers, "x-ratelimit-reset-after"),
        ) {
            bucket.limit = Some(limit as u32);
            // Those that are under way it may not have seen.
            bucket.remaining = (remaining as u32).saturating_sub(bucket.under_way.saturating_sub(1));
            bucket.reset = now.checked_add(Duration::try_from_secs_f64(after).unwrap_or(SECOND));
        } else if refused.is_none() {
            // It has no limit of its own.
            *bucket = Bucket { limit: Some(u32::MAX), remaining: u32::MAX, reset: None, ..*bucket };
        }
        if let Some(RestError::Limited { after, global }) = refused {
            let at = now.checked_add(*after);
            if *global {
                known.global = known.global.max(at);
            } else {
                bucket.limit = bucket.limit.or(Some(1));
                (bucket.remaining, bucket.reset) = (0, bucket.reset.max(at));
            }
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if let Some(bucket) = self.limits.known().buckets.get_mut(&self.bucket) {
            bucket.under_way = bucket.under_way.saturating_sub(1);
        }
        self.limits.changed.notify_waiters();
    }
}

impl Known {
    /// The bucket that the request went into, or how long it waits.
    fn ask(&mut self, path: &Path, now: Instant) -> Result<(String, String), Wait> {
        forget(&mut self.invalid, now, INVALID_WINDOW);
        if let Some(first) = self.invalid.front().filter(|_| self.invalid.len() >= INVALID) {
            return Err(Wait::Until { at: *first + INVALID_WINDOW, global: true });
        }
        let name = self.names.get(&path.route).unwrap_or(&path.route).clone();
        let key = (name, path.major.clone());
        if path.exempt {
            return Ok(key);
        }
        if let Some(at) = self.global.filter(|at| *at > now) {
            return Err(Wait::Until { at, global: true });
        }
        forget(&mut self.sent, now, SECOND);
        if let Some(first) = self.sent.front().filter(|_| self.sent.len() >= PER_SECOND) {
            return Err(Wait::Until { at: *first + SECOND, global: true });
        }
        if self.buckets.len() >= MANY {
            self.buckets.retain(|_, bucket| bucket.under_way > 0 || bucket.reset.is_some_and(|reset| reset > now));
        }
        self.buckets.entry(key.clone()).or_default().take(now)?;
        self.sent.push_back(now);
        Ok(key)
    }
}

impl Bucket {
    fn take(&mut self, now: Instant) -> Result<(), Wait> {
        let Some(limit) = self.limit else {
            if self.under_way > 0 {
                return Err(Wait::Answer);
            }
            self.under_way = 1;
            return Ok(());
        };
        if self.reset.is_some_and(|reset| reset <= now) {
            self.reset = None;
            self.remaining = limit.saturating_sub(self.under_way).max(1);
        }
        if self.remaining == 0 {
            return Err(self.reset.map_or(Wait::Answer, |at| Wait::Until { at, global: false }));
        }
        self.remaining = self.remaining.saturating_sub(1);
        self.under_way += 1;
        // Without a time when it begins anew it would stay empty.
        if self.remaining == 0 && self.reset.is_none() {
            self.reset = Some(now + SECOND);
        }
        Ok(())
    }
}

fn forget(times: &mut VecDeque<Instant>, now: Instant, window: Duration) {
    while times.front().is_some_and(|first| *first + window <= now) {
        times.pop_front();
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn number(headers: &HeaderMap, name: &str) -> Option<f64> {
    text(headers, name)?.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn path(route: &str, major: &str) -> Path {
        Path { route: route.to_owned(), major: major.to_owned(), exempt: route == "callback", own_token: false }
    }

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        of.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())).collect()
    }

    fn bucket(remaining: u32, after: &str) -> HeaderMap {
        headers(&[
            ("x-ratelimit-bucket", "b"),
            ("x-ratelimit-limit", "5"),
            ("x-ratelimit-remaining", &remaining.to_string()),
            ("x-ratelimit-reset-after", after),
        ])
    }

    async fn send(limits: &Limits, path: &Path, wait: u64, answer: &HeaderMap) -> Result<(), RestError> {
        let pass = limits.turn(path, Some(Instant::now() + Duration::from_secs(wait))).await?;
        pass.heard(StatusCode::OK, answer, None);
        Ok(())
    }

    fn later(seconds: u64, global: bool) -> Result<(), RestError> {
        Err(RestError::Limited { after: Duration::from_secs(seconds), global })
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_bucket_is_waited_for_and_holds_up_no_other() {
        let limits = Limits::default();
        let (one, other) = (path("POST /channels/*/messages", "1"), path("POST /channels/*/messages", "2"));
        assert_eq!(send(&limits, &one, 2, &bucket(0, "3")).await, Ok(()));
        assert_eq!(send(&limits, &one, 2, &bucket(4, "3")).await, later(3, false));
        assert_eq!(send(&limits, &other, 0, &bucket(4, "3")).await, Ok(()));
        let begun = Instant::now();
        assert_eq!(send(&limits, &one, 5, &bucket(4, "3")).await, Ok(()));
        assert_eq!(begun.elapsed().as_secs(), 3);
        // Routes of one name share it.
        assert_eq!(send(&limits, &path("GET /x", "1"), 0, &bucket(0, "9")).await, Ok(()));
        assert_eq!(send(&limits, &one, 0, &bucket(4, "3")).await, later(9, false));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_is_not_sent_before_its_time() {
        let limits = Limits::default();
        let (one, other, answer) = (path("PUT /a", "1"), path("PUT /b", "1"), path("callback", "7"));
        let refuse = async |path: &Path, after: u64, global| {
            let error = RestError::Limited { after: Duration::from_secs(after), global };
            let pass = limits.turn(path, Some(Instant::now())).await.unwrap();
            pass.heard(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), Some(&error));
        };
        refuse(&one, 1336, false).await;
        assert_eq!(send(&limits, &one, 60, &HeaderMap::new()).await, later(1336, false));
        assert_eq!(send(&limits, &other, 0, &HeaderMap::new()).await, Ok(()));
        refuse(&other, 30, true).await;
        assert_eq!(send(&limits, &path("PUT /c", ""), 2, &HeaderMap::new()).await, later(30, true));
        // Whoever typed a command is answered all the same.
        assert_eq!(send(&limits, &answer, 0, &HeaderMap::new()).await, Ok(()));
        // Whoever has time waits.
        let begun = Instant::now();
        drop(limits.turn(&one, None).await.unwrap());
        assert_eq!(begun.elapsed().as_secs(), 1336);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_an_unknown_bucket_go_one_at_a_time() {
        let limits = Limits::default();
        let one = path("POST /channels/*/messages", "1");
        let first = limits.turn(&one, None).await.unwrap();
        let second = limits.turn(&one, Some(Instant::now() + Duration::from_millis(10))).await;
        assert!(matches!(second, Err(RestError::Limited { .. })), "{second:?}");
        first.heard(StatusCode::OK, &bucket(1, "5"), None);
        drop(first);
        let second = limits.turn(&one, Some(Instant::now())).await.unwrap();
        assert!(limits.turn(&one, Some(Instant::now())).await.is_err());
        // One that never heard an answer gives its place back.
        drop(second);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(limits.turn(&one, Some(Instant::now())).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn neither_too_many_in_a_second_nor_too_many_that_are_refused() {
        let limits = Limits::default();
        let begun = Instant::now();
        for number in 0..PER_SECOND * 2 {
            let path = path("GET /x", &number.to_string());
            drop(limits.turn(&path, None).await.unwrap());
        }
        assert_eq!(begun.elapsed().as_secs(), 1);
        for number in 0..INVALID {
            let path = path("callback", &number.to_string());
            let pass = limits.turn(&path, None).await.unwrap();
            pass.heard(StatusCode::FORBIDDEN, &HeaderMap::new(), None);
        }
        let answer = path("callback", "1");
        assert_eq!(send(&limits, &answer, 0, &HeaderMap::new()).await, later(600, true));
        assert_eq!(limits.known().buckets.len(), PER_SECOND * 2);
    }
}
