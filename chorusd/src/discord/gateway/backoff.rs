//! How long it is until the next try.

use std::time::Duration;

/// After the first failure, at most.
const FIRST: Duration = Duration::from_secs(2);
/// A connection that stayed this long was a good one.
pub const STAYED: Duration = Duration::from_secs(60);

/// Tries that came to nothing, one after the other.
#[derive(Debug)]
pub struct Backoff {
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub fn new(longest: Duration) -> Self {
        Self { longest, failures: 0 }
    }

    /// The wait after a connection that was there for `stayed`, or never: none after one that stayed, which Discord ends by itself a few times
    /// a day. `chance` is a number from 0 up to 1: daemons that lost
    /// Discord together do not come back together.
    pub fn after(&mut self, stayed: Option<Duration>, chance: f64) -> Duration {
        if stayed.is_some_and(|stayed| stayed >= STAYED) {
            self.failures = 0;
            return Duration::ZERO;
        }
        let wait = FIRST.saturating_mul(1 << self.failures.min(16)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        wait.mul_f64(0.5 + chance / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_longest_and_begin_anew_after_a_connection_that_stayed() {
        let mut backoff = Backoff::new(Duration::from_secs(300));
        let soon = Some(Duration::from_secs(59));
        let waits: Vec<_> =
            (0..12).map(|n| backoff.after(soon.filter(|_| n % 2 == 0), 0.999_999).as_secs_f64().round()).collect();
        assert_eq!(waits, [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0, 300.0, 300.0]);
        assert_eq!(backoff.after(None, 0.0), Duration::from_secs(150));
        assert_eq!(backoff.after(Some(STAYED), 0.0), Duration::ZERO);
        assert_eq!(backoff.after(None, 0.0), Duration::from_secs(1));
        for _ in 0..100 {
            assert!(backoff.after(None, 0.5) <= Duration::from_secs(300));
        }
        assert_eq!(Backoff::new(Duration::from_millis(20)).after(None, 0.0), Duration::from_millis(10));
    }
}
