//! Backoff between tries to connect.

use std::time::Duration;

use chorus_base::Backoff;

/// Longest wait after the first failure.
const INITIAL_WAIT: Duration = Duration::from_secs(2);
/// Longest wait between tries that cost nothing of the budget of gateway sessions.
const MAX_FREE_WAIT: Duration = Duration::from_secs(30);
/// A connection that lasted this long counts as a success.
pub(super) const STABLE_AFTER: Duration = Duration::from_secs(60);

/// The waits, which grow while tries fail in a row.
#[derive(Debug)]
pub(super) struct ReconnectBackoff {
    /// For tries to begin a session.
    counted: Backoff,
    /// For tries that cost nothing.
    free: Backoff,
}

/// What the next try costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectCost {
    /// A new session, of which Discord allows a number per day.
    Counted,
    /// Nothing: there is a session to resume, or Discord was not even reached.
    Free,
}

impl ReconnectBackoff {
    pub(super) fn new(longest: Duration) -> Self {
        Self {
            counted: Backoff::new(INITIAL_WAIT, longest),
            free: Backoff::new(INITIAL_WAIT, longest.min(MAX_FREE_WAIT)),
        }
    }

    /// Returns the wait after a connection that lasted for `stayed`, or was never established (`None`). There is no
    /// wait after one that lasted [`STABLE_AFTER`], since Discord itself ends such connections a few times a day.
    /// `chance` is a random number in `0.0..1.0`, so that daemons that lost Discord together do not reconnect together.
    pub(super) fn next_wait(&mut self, stayed: Option<Duration>, next: ConnectCost, chance: f64) -> Duration {
        if stayed.is_some_and(|stayed| stayed >= STABLE_AFTER) {
            self.counted.reset();
            self.free.reset();
            return Duration::ZERO;
        }
        match next {
            ConnectCost::Counted => self.counted.next_wait_with_jitter(chance),
            ConnectCost::Free => self.free.next_wait_with_jitter(chance),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_longest_and_begin_anew_after_a_connection_that_stayed() {
        let mut backoff = ReconnectBackoff::new(Duration::from_secs(300));
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
            ReconnectBackoff::new(Duration::from_millis(20)).next_wait(None, ConnectCost::Counted, 0.0),
            Duration::from_millis(10)
        );
    }
    #[test]
    fn a_session_that_is_taken_up_again_waits_seconds_and_a_new_one_after_it_begins_anew() {
        let mut backoff = ReconnectBackoff::new(Duration::from_secs(300));
        let mut wait = |next| backoff.next_wait(None, next, 0.999_999).as_secs_f64().round();
        let waits: Vec<_> = (0..6).map(|_| wait(ConnectCost::Free)).collect();
        assert_eq!(waits, [2.0, 4.0, 8.0, 16.0, 30.0, 30.0]);
        assert_eq!([wait(ConnectCost::Counted), wait(ConnectCost::Counted), wait(ConnectCost::Free)], [2.0, 4.0, 30.0]);
        assert_eq!(
            ReconnectBackoff::new(Duration::from_millis(20)).next_wait(None, ConnectCost::Free, 0.0),
            Duration::from_millis(10)
        );
    }
}
