//! How often a request is repeated, and how long to wait before.

use std::time::Duration;

/// Attempts and waits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all.
    pub attempts: u32,
    /// Wait before the second attempt, which doubles with each further one.
    pub first_wait: Duration,
    /// Longest wait before an attempt, whatever the server asks for.
    pub longest_wait: Duration,
    /// Longest time for the first attempt, which doubles with each one that was late. Bytes add to it: a
    /// second for 256 KiB.
    pub first_timeout: Duration,
    /// Longest time for an attempt, without that for its bytes.
    pub longest_timeout: Duration,
}

/// Bytes a second that a connection carries at least: an attempt has that much more time than its time-out says.
const MIN_RATE: u64 = 256 * 1024;

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 6,
            first_wait: Duration::from_millis(100),
            longest_wait: Duration::from_secs(5),
            first_timeout: Duration::from_secs(5),
            longest_timeout: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// Returns the wait after `failed` attempts: between half and all of the doubled wait by `jitter` (0 to 1), or what the
    /// server asked for, if that is longer; never longer than the longest.
    pub(crate) fn wait_after(&self, failed: u32, jitter: f64, asked: Option<Duration>) -> Duration {
        let doubled = self.first_wait.saturating_mul(1 << failed.saturating_sub(1).min(16)).min(self.longest_wait);
        let wait = doubled.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0);
        wait.max(asked.unwrap_or_default()).min(self.longest_wait)
    }

    /// Returns the time in which an attempt, after so many that were late, sends or receives so many bytes and is answered. The first attempts are given up
    /// soon, because a connection that was cut without a word carries nothing any more; the last ones leave a slow server its
    /// time.
    pub(crate) fn timeout_after(&self, late: u32, bytes: u64) -> Duration {
        let doubled = self.first_timeout.saturating_mul(1 << late.min(16)).min(self.longest_timeout);
        doubled.saturating_add(Duration::from_millis(bytes.saturating_mul(1000) / MIN_RATE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_heed_the_server() {
        let policy = RetryPolicy::default();
        let waits: Vec<u128> = (1..=8).map(|failed| policy.wait_after(failed, 1.0, None).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(policy.wait_after(1, 0.0, None), Duration::from_millis(50));
        assert_eq!(policy.wait_after(1, 0.0, Some(Duration::from_secs(2))), Duration::from_secs(2));
        assert_eq!(policy.wait_after(99, 1.0, Some(Duration::from_secs(3600))), Duration::from_secs(5));
    }

    #[test]
    fn attempts_have_more_time_after_each_late_one_and_for_each_byte() {
        let policy = RetryPolicy::default();
        let times: Vec<u64> = (0..policy.attempts).map(|late| policy.timeout_after(late, 0).as_secs()).collect();
        assert_eq!(times, [5, 10, 20, 40, 60, 60]);
        assert_eq!(policy.timeout_after(0, 10 * MIN_RATE), Duration::from_secs(15));
        assert_eq!(policy.timeout_after(5, 5 << 30), Duration::from_secs(60 + 20_480));
        assert!(policy.timeout_after(u32::MAX, u64::MAX) > Duration::from_secs(60));
    }
}
