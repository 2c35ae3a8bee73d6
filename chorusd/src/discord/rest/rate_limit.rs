//! How many requests Discord takes, as its answers say: by bucket, for all together, and how many that were refused.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::error::RestError;
use super::route_key::RouteKey;

/// Requests a second; Discord takes 50.
const MAX_PER_SECOND: usize = 45;
const SECOND: Duration = Duration::from_secs(1);
/// Requests within [`INVALID_WINDOW`] that may be refused; Discord bars an address after 10,000.
const MAX_INVALID: usize = 1_000;
const INVALID_WINDOW: Duration = Duration::from_secs(600);
/// What is known of more buckets is looked through for what may be forgotten.
const MAX_BUCKETS: usize = 1_024;
/// Until it is known how many a bucket takes, one goes at a time. It is looked at again after this.
const UNKNOWN_LIMIT_POLL: Duration = Duration::from_secs(1);

/// What is known of all of them.
#[derive(Debug, Default)]
pub struct RateLimits {
    state: Mutex<LimitState>,
    /// Somebody who waits may go sooner than was thought.
    changed: Notify,
}

#[derive(Debug, Default)]
struct LimitState {
    /// Routes that share a bucket have one name for it.
    bucket_names: HashMap<String, String>,
    buckets: HashMap<(String, String), Bucket>,
    /// When requests were sent, of the last second.
    sent: VecDeque<Instant>,
    /// When requests were refused.
    invalid: VecDeque<Instant>,
    /// Nothing goes before.
    global_until: Option<Instant>,
}

#[derive(Debug, Default, Clone)]
struct Bucket {
    /// `None`: no answer has said.
    limit: Option<u32>,
    remaining: u32,
    reset_at: Option<Instant>,
    in_flight: u32,
}

/// Why a request has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// For this time.
    Until { at: Instant, global: bool },
    /// For the answer to another.
    Response,
}

/// Leave to send one request. Dropped, the request is over.
#[derive(Debug)]
pub struct Permit<'l> {
    limits: &'l RateLimits,
    bucket: (String, String),
    route: String,
    exempt: bool,
}

impl RateLimits {
    /// Waits for its turn, until `latest` at most.
    ///
    /// # Errors
    /// `Limited`: its turn is later.
    pub async fn acquire(&self, path: &RouteKey, latest: Option<Instant>) -> Result<Permit<'_>, RestError> {
        loop {
            // Before looking, so that no change is missed.
            let changed = self.changed.notified();
            let now = Instant::now();
            let wait = match self.lock().try_acquire(path, now) {
                Ok(bucket) => {
                    return Ok(Permit { limits: self, bucket, route: path.route.clone(), exempt: path.is_exempt });
                }
                Err(wait) => wait,
            };
            let (at, global) = match wait {
                Wait::Until { at, global } => (at, global),
                Wait::Response => (now + UNKNOWN_LIMIT_POLL, false),
            };
            if wait != Wait::Response && latest.is_some_and(|latest| at > latest) {
                return Err(RestError::RateLimited { after: at - now, global });
            }
            let until = latest.map_or(at, |latest| at.min(latest));
            if timeout_at(until, changed).await.is_err() && latest.is_some_and(|latest| Instant::now() >= latest) {
                return Err(RestError::RateLimited { after: at.saturating_duration_since(Instant::now()), global });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, LimitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// Learns from the answer; `refused` is what it said instead of doing it.
    pub fn update(&self, status: StatusCode, headers: &HeaderMap, refused: Option<&RestError>) {
        let now = Instant::now();
        let mut known = self.limits.lock();
        let shared = header_text(headers, "x-ratelimit-scope") == Some("shared");
        let invalid = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS];
        if invalid.contains(&status) && !shared {
            known.invalid.push_back(now);
        }
        if self.exempt {
            return;
        }
        if let Some(name) = header_text(headers, "x-ratelimit-bucket") {
            known.bucket_names.insert(self.route.clone(), name.to_owned());
        }
        // It may have another name since.
        let name = known.bucket_names.get(&self.route).unwrap_or(&self.route).clone();
        let bucket = known.buckets.entry((name, self.bucket.1.clone())).or_default();
        if let (Some(limit), Some(remaining), Some(after)) = (
            header_number(headers, "x-ratelimit-limit"),
            header_number(headers, "x-ratelimit-remaining"),
            header_number(headers, "x-ratelimit-reset-after"),
        ) {
            bucket.limit = Some(limit as u32);
            // Those that are under way it may not have seen.
            bucket.remaining = (remaining as u32).saturating_sub(bucket.in_flight.saturating_sub(1));
            bucket.reset_at = now.checked_add(Duration::try_from_secs_f64(after).unwrap_or(SECOND));
        } else if refused.is_none() {
            // It has no limit of its own.
            *bucket = Bucket { limit: Some(u32::MAX), remaining: u32::MAX, reset_at: None, ..*bucket };
        }
        if let Some(RestError::RateLimited { after, global }) = refused {
            let at = now.checked_add(*after);
            if *global {
                known.global_until = known.global_until.max(at);
            } else {
                bucket.limit = bucket.limit.or(Some(1));
                (bucket.remaining, bucket.reset_at) = (0, bucket.reset_at.max(at));
            }
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(bucket) = self.limits.lock().buckets.get_mut(&self.bucket) {
            bucket.in_flight = bucket.in_flight.saturating_sub(1);
        }
        self.limits.changed.notify_waiters();
    }
}

impl LimitState {
    /// The bucket that the request went into, or how long it waits.
    fn try_acquire(&mut self, path: &RouteKey, now: Instant) -> Result<(String, String), Wait> {
        drop_expired(&mut self.invalid, now, INVALID_WINDOW);
        if let Some(first) = self.invalid.front().filter(|_| self.invalid.len() >= MAX_INVALID) {
            return Err(Wait::Until { at: *first + INVALID_WINDOW, global: true });
        }
        let name = self.bucket_names.get(&path.route).unwrap_or(&path.route).clone();
        let key = (name, path.major.clone());
        if path.is_exempt {
            return Ok(key);
        }
        if let Some(at) = self.global_until.filter(|at| *at > now) {
            return Err(Wait::Until { at, global: true });
        }
        drop_expired(&mut self.sent, now, SECOND);
        if let Some(first) = self.sent.front().filter(|_| self.sent.len() >= MAX_PER_SECOND) {
            return Err(Wait::Until { at: *first + SECOND, global: true });
        }
        if self.buckets.len() >= MAX_BUCKETS {
            self.buckets.retain(|_, bucket| bucket.in_flight > 0 || bucket.reset_at.is_some_and(|reset| reset > now));
        }
        self.buckets.entry(key.clone()).or_default().try_take(now)?;
        self.sent.push_back(now);
        Ok(key)
    }
}

impl Bucket {
    fn try_take(&mut self, now: Instant) -> Result<(), Wait> {
        let Some(limit) = self.limit else {
            if self.in_flight > 0 {
                return Err(Wait::Response);
            }
            self.in_flight = 1;
            return Ok(());
        };
        if self.reset_at.is_some_and(|reset| reset <= now) {
            self.reset_at = None;
            self.remaining = limit.saturating_sub(self.in_flight).max(1);
        }
        if self.remaining == 0 {
            return Err(self.reset_at.map_or(Wait::Response, |at| Wait::Until { at, global: false }));
        }
        self.remaining = self.remaining.saturating_sub(1);
        self.in_flight += 1;
        // Without a time when it begins anew it would stay empty.
        if self.remaining == 0 && self.reset_at.is_none() {
            self.reset_at = Some(now + SECOND);
        }
        Ok(())
    }
}

fn drop_expired(times: &mut VecDeque<Instant>, now: Instant, window: Duration) {
    while times.front().is_some_and(|first| *first + window <= now) {
        times.pop_front();
    }
}

fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn header_number(headers: &HeaderMap, name: &str) -> Option<f64> {
    header_text(headers, name)?.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn path(route: &str, major: &str) -> RouteKey {
        RouteKey {
            route: route.to_owned(),
            major: major.to_owned(),
            is_exempt: route == "callback",
            has_own_token: false,
        }
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

    async fn send(limits: &RateLimits, path: &RouteKey, wait: u64, answer: &HeaderMap) -> Result<(), RestError> {
        let pass = limits.acquire(path, Some(Instant::now() + Duration::from_secs(wait))).await?;
        pass.update(StatusCode::OK, answer, None);
        Ok(())
    }

    fn later(seconds: u64, global: bool) -> Result<(), RestError> {
        Err(RestError::RateLimited { after: Duration::from_secs(seconds), global })
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_bucket_is_waited_for_and_holds_up_no_other() {
        let limits = RateLimits::default();
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
        let limits = RateLimits::default();
        let (one, other, answer) = (path("PUT /a", "1"), path("PUT /b", "1"), path("callback", "7"));
        let refuse = async |path: &RouteKey, after: u64, global| {
            let error = RestError::RateLimited { after: Duration::from_secs(after), global };
            let pass = limits.acquire(path, Some(Instant::now())).await.unwrap();
            pass.update(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), Some(&error));
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
        drop(limits.acquire(&one, None).await.unwrap());
        assert_eq!(begun.elapsed().as_secs(), 1336);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_an_unknown_bucket_go_one_at_a_time() {
        let limits = RateLimits::default();
        let one = path("POST /channels/*/messages", "1");
        let first = limits.acquire(&one, None).await.unwrap();
        let second = limits.acquire(&one, Some(Instant::now() + Duration::from_millis(10))).await;
        assert!(matches!(second, Err(RestError::RateLimited { .. })), "{second:?}");
        first.update(StatusCode::OK, &bucket(1, "5"), None);
        drop(first);
        let second = limits.acquire(&one, Some(Instant::now())).await.unwrap();
        assert!(limits.acquire(&one, Some(Instant::now())).await.is_err());
        // One that never heard an answer gives its place back.
        drop(second);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(limits.acquire(&one, Some(Instant::now())).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn neither_too_many_in_a_second_nor_too_many_that_are_refused() {
        let limits = RateLimits::default();
        let begun = Instant::now();
        for number in 0..MAX_PER_SECOND * 2 {
            let path = path("GET /x", &number.to_string());
            drop(limits.acquire(&path, None).await.unwrap());
        }
        assert_eq!(begun.elapsed().as_secs(), 1);
        for number in 0..MAX_INVALID {
            let path = path("callback", &number.to_string());
            let pass = limits.acquire(&path, None).await.unwrap();
            pass.update(StatusCode::FORBIDDEN, &HeaderMap::new(), None);
        }
        let answer = path("callback", "1");
        assert_eq!(send(&limits, &answer, 0, &HeaderMap::new()).await, later(600, true));
        assert_eq!(limits.lock().buckets.len(), MAX_PER_SECOND * 2);
    }
}
