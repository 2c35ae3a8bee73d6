//! Retry policy: whether a failed call is retried, and after which wait.

use std::time::Duration;

use chorus_base::backoff::{Backoff, equal_jitter};
use jiff::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::error::{CallError, ErrorClass};

/// Limits of retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Number of attempts, including the first.
    pub max_attempts: u32,
    /// Upper bound of the wait before the second attempt; it doubles with each attempt.
    pub base: Duration,
    /// Upper bound of all such waits.
    pub cap: Duration,
    /// Longest wait that a provider may ask for; a longer one ends the call.
    pub max_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(8),
            max_retry_after: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// Returns the wait after attempt `attempt` (from 1) failed with `error`; `None` if there must be no further one.
    /// `chance` is a random number from 0 up to 1.
    #[must_use]
    pub fn retry_delay(&self, error: &CallError, attempt: u32, chance: f64) -> Option<Duration> {
        if attempt >= self.max_attempts || !is_transient(error.class) {
            return None;
        }
        match error.retry_after {
            Some(asked) if asked > self.max_retry_after => None,
            // Never wait less than the provider asked for.
            Some(asked) => Some(asked + self.base.mul_f64(chance).min(asked / 4)),
            None => Some(self.backoff(attempt, chance)),
        }
    }

    /// Returns the wait after attempt `attempt` (from 1), which doubles with each attempt, with jitter.
    #[must_use]
    pub fn backoff(&self, attempt: u32, chance: f64) -> Duration {
        equal_jitter(Backoff::new(self.base, self.cap).wait_after(attempt - 1), chance)
    }

    /// Returns the wait that the provider asked for if it exceeds the limit.
    #[must_use]
    pub(crate) fn excessive_retry_after(&self, error: &CallError) -> Option<Duration> {
        error.retry_after.filter(|asked| *asked > self.max_retry_after && is_transient(error.class))
    }
}

/// Returns whether a failure of this class may be transient.
fn is_transient(class: ErrorClass) -> bool {
    match class {
        ErrorClass::RateLimited | ErrorClass::Overloaded | ErrorClass::Server | ErrorClass::Network => true,
        ErrorClass::ConnectionRefused | ErrorClass::Loading => true,
        // The time limits are what the user is willing to wait, so they are not multiplied by retries.
        ErrorClass::Timeout => false,
        ErrorClass::Auth | ErrorClass::Denied | ErrorClass::NotFound | ErrorClass::SpendCap => false,
        ErrorClass::ContextTooLong | ErrorClass::AnswerTooLong | ErrorClass::NoImages | ErrorClass::BadRequest => false,
        ErrorClass::Malformed | ErrorClass::Cancelled => false,
    }
}

/// Parses the wait that the response headers ask for: in milliseconds, in seconds, or until a date.
#[must_use]
pub(crate) fn parse_retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    if let Some(milliseconds) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let given = text(RETRY_AFTER.as_str())?;
    if let Some(seconds) = number(given) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(given).ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(class: ErrorClass, retry_after: Option<u64>) -> CallError {
        CallError { retry_after: retry_after.map(Duration::from_secs), ..CallError::new(class, "") }
    }

    #[test]
    fn waits_grow_are_capped_and_end() {
        let policy = RetryPolicy::default();
        let wait = |attempt, chance| policy.retry_delay(&error(ErrorClass::Overloaded, None), attempt, chance);
        assert_eq!([1, 2, 3].map(|n| wait(n, 1.0).unwrap().as_millis()), [500, 1000, 2000]);
        assert_eq!(wait(1, 0.0), Some(Duration::from_millis(250)), "half of it is certain");
        assert_eq!(wait(4, 1.0), None);
        let patient = RetryPolicy { max_attempts: 100, ..policy };
        assert_eq!(patient.retry_delay(&error(ErrorClass::Server, None), 90, 1.0), Some(policy.cap));
    }

    #[test]
    fn what_the_provider_asks_for_is_waited_at_least_and_not_for_ever() {
        let policy = RetryPolicy::default();
        let wait = |asked| policy.retry_delay(&error(ErrorClass::RateLimited, Some(asked)), 1, 0.9);
        assert!((Duration::from_secs(60)..Duration::from_secs(61)).contains(&wait(60).unwrap()));
        assert_eq!((wait(61), wait(0)), (None, Some(Duration::ZERO)));
        assert_eq!(
            policy.excessive_retry_after(&error(ErrorClass::RateLimited, Some(1336))),
            Some(Duration::from_secs(1336))
        );
        assert_eq!(policy.excessive_retry_after(&error(ErrorClass::RateLimited, Some(60))), None);
    }

    #[test]
    fn only_what_passes_by_itself_is_tried_again() {
        for class in [
            ErrorClass::RateLimited,
            ErrorClass::Overloaded,
            ErrorClass::Server,
            ErrorClass::Network,
            ErrorClass::ConnectionRefused,
            ErrorClass::Loading,
        ] {
            assert!(RetryPolicy::default().retry_delay(&error(class, None), 1, 0.5).is_some(), "{class:?}");
        }
        for class in [
            ErrorClass::Auth,
            ErrorClass::Denied,
            ErrorClass::BadRequest,
            ErrorClass::ContextTooLong,
            ErrorClass::AnswerTooLong,
            ErrorClass::NoImages,
            ErrorClass::SpendCap,
            ErrorClass::Timeout,
            ErrorClass::Malformed,
            ErrorClass::Cancelled,
            ErrorClass::NotFound,
        ] {
            assert_eq!(RetryPolicy::default().retry_delay(&error(class, Some(1)), 1, 0.5), None, "{class:?}");
        }
    }

    #[test]
    fn every_form_of_retry_after() {
        let now: Timestamp = "2026-11-22T08:49:37Z".parse().unwrap();
        for (name, value, due) in [
            ("retry-after", "7", Some(7000)),
            ("retry-after", " 1.5 ", Some(1500)),
            ("retry-after", "Sun, 22 Nov 2026 08:50:07 GMT", Some(30_000)),
            ("retry-after", "Sun, 22 Nov 2026 08:00:00 GMT", Some(0)),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
            ("retry-after", "1e400", None),
            ("retry-after-ms", "250", Some(250)),
            ("x-other", "1", None),
        ] {
            let name = reqwest::header::HeaderName::from_static(name);
            let headers = HeaderMap::from_iter([(name, value.parse().unwrap())]);
            assert_eq!(parse_retry_after(&headers, now).map(|asked| asked.as_millis()), due, "{value}");
        }
    }
}
