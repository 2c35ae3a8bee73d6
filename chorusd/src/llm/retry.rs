//! Whether a call that failed is tried again, and when.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::error::{CallError, Class};

/// How often and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Tries in all, the first included.
    pub tries: u32,
    /// The longest wait before the second try; it doubles from try to try.
    pub base: Duration,
    /// What no such wait exceeds.
    pub cap: Duration,
    /// The longest wait that a provider may ask for; a longer one ends the call.
    pub asked: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self { tries: 4, base: Duration::from_millis(500), cap: Duration::from_secs(8), asked: Duration::from_secs(60) }
    }
}

impl Policy {
    /// How long to wait after try `attempt` (from 1) failed with `error`; `None`: it is the last. `chance` is a number
    /// from 0 up to 1.
    #[must_use]
    pub fn wait(&self, error: &CallError, attempt: u32, chance: f64) -> Option<Duration> {
        if attempt >= self.tries || !passes(error.class) {
            return None;
        }
        match error.retry_after {
            Some(asked) if asked > self.asked => None,
            // What was asked for is waited at least.
            Some(asked) => Some(asked + self.base.mul_f64(chance).min(asked / 4)),
            None => Some(self.backoff(attempt, chance)),
        }
    }

    /// Returns the wait after try `attempt` (from 1), which doubles from try to try. Half of it is chance: agents that failed together do
    /// not come back together, and none comes back at once.
    #[must_use]
    pub fn backoff(&self, attempt: u32, chance: f64) -> Duration {
        let half = self.base.saturating_mul(1 << (attempt - 1).min(16)).min(self.cap) / 2;
        half + half.mul_f64(chance)
    }

    /// Whether the provider asked for more patience than there is.
    #[must_use]
    pub fn too_long(&self, error: &CallError) -> Option<Duration> {
        error.retry_after.filter(|asked| *asked > self.asked && passes(error.class))
    }
}

/// Whether a failure of this class may pass by itself.
fn passes(class: Class) -> bool {
    match class {
        Class::RateLimited | Class::Overloaded | Class::Server | Class::Network => true,
        Class::Refused | Class::Loading => true,
        // The limits are what somebody is willing to wait: they are not waited for four times.
        Class::Timeout => false,
        Class::Auth | Class::Denied | Class::NotFound | Class::SpendCap => false,
        Class::ContextTooLong | Class::AnswerTooLong | Class::NoImages | Class::BadRequest => false,
        Class::Malformed | Class::Cancelled => false,
    }
}

/// How long the headers of an answer ask to wait: in milliseconds, in seconds, or until a date.
#[must_use]
pub fn asked(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
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

    fn error(class: Class, retry_after: Option<u64>) -> CallError {
        CallError { retry_after: retry_after.map(Duration::from_secs), ..CallError::new(class, "") }
    }

    #[test]
    fn waits_grow_are_capped_and_end() {
        let policy = Policy::default();
        let wait = |attempt, chance| policy.wait(&error(Class::Overloaded, None), attempt, chance);
        assert_eq!([1, 2, 3].map(|n| wait(n, 1.0).unwrap().as_millis()), [500, 1000, 2000]);
        assert_eq!(wait(1, 0.0), Some(Duration::from_millis(250)), "half of it is certain");
        assert_eq!(wait(4, 1.0), None);
        let patient = Policy { tries: 100, ..policy };
        assert_eq!(patient.wait(&error(Class::Server, None), 90, 1.0), Some(policy.cap));
    }

    #[test]
    fn what_the_provider_asks_for_is_waited_at_least_and_not_for_ever() {
        let policy = Policy::default();
        let wait = |asked| policy.wait(&error(Class::RateLimited, Some(asked)), 1, 0.9);
        assert!((Duration::from_secs(60)..Duration::from_secs(61)).contains(&wait(60).unwrap()));
        assert_eq!((wait(61), wait(0)), (None, Some(Duration::ZERO)));
        assert_eq!(policy.too_long(&error(Class::RateLimited, Some(1336))), Some(Duration::from_secs(1336)));
        assert_eq!(policy.too_long(&error(Class::RateLimited, Some(60))), None);
    }

    #[test]
    fn only_what_passes_by_itself_is_tried_again() {
        for class in
            [Class::RateLimited, Class::Overloaded, Class::Server, Class::Network, Class::Refused, Class::Loading]
        {
            assert!(Policy::default().wait(&error(class, None), 1, 0.5).is_some(), "{class:?}");
        }
        for class in [
            Class::Auth,
            Class::Denied,
            Class::BadRequest,
            Class::ContextTooLong,
            Class::AnswerTooLong,
            Class::NoImages,
            Class::SpendCap,
            Class::Timeout,
            Class::Malformed,
            Class::Cancelled,
            Class::NotFound,
        ] {
            assert_eq!(Policy::default().wait(&error(class, Some(1)), 1, 0.5), None, "{class:?}");
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
            assert_eq!(asked(&headers, now).map(|asked| asked.as_millis()), due, "{value}");
        }
    }
}
