//! How many requests a route takes in how long.

use std::collections::HashMap;
use std::time::{Duration, Instant};

type Headers = Vec<(&'static str, String)>;

/// Counts requests by method, route and the channel, server or webhook that it is about.
#[derive(Debug)]
pub struct RateLimits {
    /// Requests that a route takes in `per`.
    pub limit: usize,
    pub per: Duration,
    /// Whether more are refused, or only counted.
    pub is_enforced: bool,
    counts: HashMap<String, (Instant, usize)>,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self { limit: 5, per: Duration::from_secs(5), is_enforced: false, counts: HashMap::new() }
    }
}

impl RateLimits {
    /// How long it has to wait where it is one too many, and the headers that say how it stands.
    pub fn count_request(&mut self, method: &str, path: &str) -> (Option<Duration>, Headers) {
        // Answers to interactions are bound to no limit that anybody comes to.
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

/// The method and the route; of the numbers in it only the first counts.
fn bucket_name(method: &str, path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let parts = parts.iter().enumerate().map(|(at, part)| {
        let number = part.bytes().all(|byte| byte.is_ascii_digit());
        if number && at > 1 { "id" } else { part }
    });
    format!("{method}.{}", parts.collect::<Vec<_>>().join("."))
}
