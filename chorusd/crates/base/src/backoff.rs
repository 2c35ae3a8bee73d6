//! Waits between tries, which grow while the tries fail.

use std::time::Duration;

/// Waits that double from an initial one up to a maximum. Reads no clock and draws no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    initial: Duration,
    max: Duration,
    /// Waits since the last reset.
    count: u32,
}

impl Backoff {
    #[must_use]
    pub const fn new(initial: Duration, max: Duration) -> Self {
        Self { initial, max, count: 0 }
    }

    /// Returns the wait before the next try. The one after it is twice as long.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.wait_after(self.count);
        self.count = self.count.saturating_add(1);
        wait
    }

    /// Like [`Backoff::next_wait`] with [`equal_jitter`].
    pub fn next_wait_with_jitter(&mut self, chance: f64) -> Duration {
        equal_jitter(self.next_wait(), chance)
    }

    /// Begins with the initial wait again, after a success.
    pub fn reset(&mut self) {
        self.count = 0;
    }

    /// Returns the wait that follows `count` other waits.
    #[must_use]
    pub fn wait_after(&self, count: u32) -> Duration {
        self.initial.saturating_mul(1 << count.min(16)).min(self.max)
    }
}

/// Makes half of a wait random, so that those who failed together do not retry together; the other half is fixed, so
/// that nobody retries at once. `chance` is a random number in `0.0..1.0`.
#[must_use]
pub fn equal_jitter(wait: Duration, chance: f64) -> Duration {
    wait / 2 + (wait / 2).mul_f64(chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_maximum_and_begin_anew_after_a_reset() {
        let mut backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(30));
        let waits: Vec<u64> = (0..7).map(|_| backoff.next_wait().as_secs()).collect();
        assert_eq!(waits, [2, 4, 8, 16, 30, 30, 30]);
        backoff.reset();
        assert_eq!(backoff.next_wait(), Duration::from_secs(2));
        assert_eq!(backoff.wait_after(u32::MAX), Duration::from_secs(30));
        assert_eq!(Backoff::new(Duration::MAX, Duration::MAX).wait_after(9), Duration::MAX);
    }

    #[test]
    fn half_of_a_wait_is_random() {
        let wait = Duration::from_secs(8);
        assert_eq!(equal_jitter(wait, 0.0), Duration::from_secs(4));
        assert_eq!(equal_jitter(wait, 0.5), Duration::from_secs(6));
        assert_eq!(Backoff::new(wait, wait).next_wait_with_jitter(0.25), Duration::from_secs(5));
    }
}
