//! Backoff between tries to connect.

use std::time::Duration;

/// Longest wait after the first failure.
const INITIAL_WAIT: Duration = Duration::from_secs(2);
/// Longest wait between tries that cost nothing of the budget of gateway sessions.
const MAX_FREE_WAIT: Duration = Duration::from_secs(30);
/// A connection that lasted this long counts as a success.
pub(super) const STABLE_AFTER: Duration = Duration::from_secs(60);

/// Counts the tries that failed in a row.
#[derive(Debug)]
pub(super) struct Backoff {
    longest: Duration,
    /// Failed tries to begin a session, since the last connection that lasted.
    counted_failures: u32,
    /// Failed tries that cost nothing.
    free_failures: u32,
}

/// What the next try costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectCost {
    /// A new session, of which Discord allows a number per day.
    Counted,
    /// Nothing: there is a session to resume, or Discord was not even reached.
    Free,
}

impl Backoff {
    pub(super) fn new(longest: Duration) -> Self {
        Self { longest, counted_failures: 0, free_failures: 0 }
    }

    /// Returns the wait after a connection that lasted for `stayed`, or was never established (`None`). There is no
    /// wait after one that lasted [`STABLE_AFTER`], since Discord itself ends such connections a few times a day.
    /// `chance` is a random number in `0.0..1.0`, so that daemons that lost Discord together do not reconnect together.
    pub(super) fn next_wait(&mut self, stayed: Option<Duration>, next: ConnectCost, chance: f64) -> Duration {
        if stayed.is_some_and(|stayed| stayed >= STABLE_AFTER) {
            (self.counted_failures, self.free_failures) = (0, 0);
            return Duration::ZERO;
        }
        let (failures, longest) = match next {
            ConnectCost::Counted => (&mut self.counted_failures, self.longest),
            ConnectCost::Free => (&mut self.free_failures, self.longest.min(MAX_FREE_WAIT)),
        };
        let wait = INITIAL_WAIT.saturating_mul(1 << (*failures).min(16)).min(longest);
        *failures = failures.saturating_add(1);
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
        let waits: Vec<_> = (0..12)
            .map(|n| {
                backoff.next_wait(soon.filter(|_| n % 2 == 0), ConnectCost::Counted, 0.999_999).as_secs_f64().round()
            })
            .collect();
        assert_eq!(waits, [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0, 300.0, 300.0]);
        assert_eq!(backoff.next_wait(None, ConnectCost::Counted, 0.0), Duration::from_secs(150));
        assert_eq!(backoff.next_wait(Some(STABLE_AFTER), ConnectCost::Counted, 0.0), Duration::ZERO);
        assert_eq!(backoff.next_wait(None, ConnectCost::Counted, 0.0), Duration::from_secs(1));
        for _ in 0..100 {
            assert!(backoff.next_wait(None, ConnectCost::Counted, 0.5) <= Duration::from_secs(300));
        }
        assert_eq!(
            Backoff::new(Duration::from_millis(20)).next_wait(None, ConnectCost::Counted, 0.0),
            Duration::from_millis(10)
        );
    }
    #[test]
    fn a_session_that_is_taken_up_again_waits_seconds_and_a_new_one_after_it_begins_anew() {
        let mut backoff = Backoff::new(Duration::from_secs(300));
        let mut wait = |next| backoff.next_wait(None, next, 0.999_999).as_secs_f64().round();
        let waits: Vec<_> = (0..6).map(|_| wait(ConnectCost::Free)).collect();
        assert_eq!(waits, [2.0, 4.0, 8.0, 16.0, 30.0, 30.0]);
        assert_eq!([wait(ConnectCost::Counted), wait(ConnectCost::Counted), wait(ConnectCost::Free)], [2.0, 4.0, 30.0]);
        assert_eq!(
            Backoff::new(Duration::from_millis(20)).next_wait(None, ConnectCost::Free, 0.0),
            Duration::from_millis(10)
        );
    }
}
