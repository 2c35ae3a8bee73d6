//! Rate limits of routes.

use std::collections::HashMap;
use std::time::{Duration, Instant};

type Headers = Vec<(&'static str, String)>;

/// Counts requests by method, route and major parameter (channel, guild or webhook).
#[derive(Debug)]
pub struct RateLimits {
    /// Requests that a bucket allows in `per`.
    pub limit: usize,
    pub per: Duration,
    /// Whether further requests are refused, or only counted.
    pub is_enforced: bool,
    counts: HashMap<String, (Instant, usize)>,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self { limit: 5, per: Duration::from_secs(5), is_enforced: false, counts: HashMap::new() }
    }
}

impl RateLimits {
    /// Counts a request. Returns how long it has to wait if it is one too many, and the rate limit headers.
    pub fn count_request(&mut self, method: &str, path: &str) -> (Option<Duration>, Headers) {
        // Responses to interactions have no limit that an application reaches.
        if !self.is_enforced || path.starts_with("/interactions") || path.starts_with("/attachments") {
            return (None, Vec::new());
        }
        let bucket = bucket_name(method, path);
        let (begun, count) = self.counts.entry(bucket.clone()).or_insert((Instant::now(), 0));
        if begun.elapsed() >= self.per {
            (*begun, *count) = (Instant::now(), 0);
        }
        let left = self.per.saturating_sub(begun.elapsed());
        let limited = (*count >= self.limit).then_some(left);
        if limited.is_none() {
            *count += 1;
        }
        let headers = vec![
            ("x-ratelimit-limit", self.limit.to_string()),
            ("x-ratelimit-remaining", (self.limit - *count).to_string()),
            ("x-ratelimit-reset-after", format!("{:.3}", left.as_secs_f64())),
            ("x-ratelimit-bucket", bucket),
        ];
        (limited, headers)
    }
}

/// Returns the name of a bucket: method and route, in which only the first id counts.
fn bucket_name(method: &str, path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let parts = parts.iter().enumerate().map(|(at, part)| {
        let number = part.bytes().all(|byte| byte.is_ascii_digit());
        if number && at > 1 { "id" } else { part }
    });
    format!("{method}.{}", parts.collect::<Vec<_>>().join("."))
}
