//! Rate limits, learned from the headers of Discord's responses: for each bucket, for all requests together, and for
//! invalid requests.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use chorus_base::sync::Mutex;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::error::RestError;
use super::route_key::RouteKey;

/// Requests per second; Discord allows 50.
const MAX_PER_SECOND: usize = 45;
const SECOND: Duration = Duration::from_secs(1);
/// Invalid requests within [`INVALID_WINDOW`]; Discord blocks an address after 10,000.
const MAX_INVALID: usize = 1_000;
const INVALID_WINDOW: Duration = Duration::from_secs(600);
/// If more buckets are known, those without requests in flight or a pending reset are dropped.
const MAX_BUCKETS: usize = 1_024;
/// Until the limit of a bucket is known, one request is sent at a time. A waiting request checks again after this time.
const UNKNOWN_LIMIT_POLL: Duration = Duration::from_secs(1);

/// The rate limits of all requests.
#[derive(Debug, Default)]
pub(super) struct RateLimits {
    state: Mutex<LimitState>,
    /// Notified when a waiting request may be allowed sooner than expected.
    changed: Notify,
}

#[derive(Debug, Default)]
struct LimitState {
    /// Bucket names by route; routes that share a bucket have the same name.
    bucket_names: HashMap<String, String>,
    buckets: HashMap<(String, String), Bucket>,
    /// When the requests of the last second were sent.
    sent: VecDeque<Instant>,
    /// When requests were refused as invalid.
    invalid: VecDeque<Instant>,
    /// No request is sent before this time.
    global_until: Option<Instant>,
}

#[derive(Debug, Default, Clone)]
struct Bucket {
    /// `None` until a response says it.
    limit: Option<u32>,
    remaining: u32,
    reset_at: Option<Instant>,
    in_flight: u32,
}

/// Why a request has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// Until this time.
    Until { at: Instant, global: bool },
    /// For the response of another request.
    Response,
}

/// Permission to send one request. Dropping it ends the request.
#[derive(Debug)]
pub(super) struct Permit<'l> {
    limits: &'l RateLimits,
    bucket: (String, String),
    route: String,
    exempt: bool,
}

impl RateLimits {
    /// Waits for permission to send a request, until `latest` at most.
    ///
    /// # Errors
    /// `RateLimited` if it has to wait longer.
    pub(super) async fn acquire(&self, path: &RouteKey, latest: Option<Instant>) -> Result<Permit<'_>, RestError> {
        loop {
            // Register before checking the state, so that no change is missed.
            let changed = self.changed.notified();
            let now = Instant::now();
            let wait = match self.state.lock().try_acquire(path, now) {
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
}

impl Permit<'_> {
    /// Updates the limits from a response; `refused` is the error in it.
    pub(super) fn update(&self, status: StatusCode, headers: &HeaderMap, refused: Option<&RestError>) {
        let now = Instant::now();
        let mut known = self.limits.state.lock();
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
        // The headers may have named another bucket.
        let name = known.bucket_names.get(&self.route).unwrap_or(&self.route).clone();
        let bucket = known.buckets.entry((name, self.bucket.1.clone())).or_default();
        if let (Some(limit), Some(remaining), Some(after)) = (
            header_number(headers, "x-ratelimit-limit"),
            header_number(headers, "x-ratelimit-remaining"),
            header_number(headers, "x-ratelimit-reset-after"),
        ) {
            bucket.limit = Some(limit as u32);
            // The response may not count the other requests in flight.
            bucket.remaining = (remaining as u32).saturating_sub(bucket.in_flight.saturating_sub(1));
            bucket.reset_at = now.checked_add(Duration::try_from_secs_f64(after).unwrap_or(SECOND));
        } else if refused.is_none() {
            // The route has no limit of its own.
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
        if let Some(bucket) = self.limits.state.lock().buckets.get_mut(&self.bucket) {
            bucket.in_flight = bucket.in_flight.saturating_sub(1);
        }
        self.limits.changed.notify_waiters();
    }
}

impl LimitState {
    /// Returns the bucket that the request was counted in, or how long it has to wait.
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
        // Without a reset time the bucket would stay empty.
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
        // Routes with the same bucket name share the bucket.
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
        // Responses to interactions are exempt.
        assert_eq!(send(&limits, &answer, 0, &HeaderMap::new()).await, Ok(()));
        // Requests without a deadline wait.
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
        // A request without a response returns its place.
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
        assert_eq!(limits.state.lock().buckets.len(), MAX_PER_SECOND * 2);
    }
}
