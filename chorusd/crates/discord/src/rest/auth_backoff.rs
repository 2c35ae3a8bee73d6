//! Backs off after 401 responses instead of retrying at full rate. It still retries now and then, because a proxy in
//! front of Discord may have produced the 401.

use std::time::Duration;

use chorus_base::Backoff;
use chorus_base::sync::Mutex;
use tokio::time::Instant;

/// Pauses after refusals.
const REFUSAL_BACKOFF: Backoff = Backoff::new(Duration::from_secs(60), Duration::from_secs(3600));

/// The pause during which no request is sent.
#[derive(Debug, Default)]
pub(super) struct AuthBackoff(Mutex<Option<Pause>>);

#[derive(Debug, Clone, Copy)]
struct Pause {
    until: Instant,
    backoff: Backoff,
}

impl AuthBackoff {
    /// Returns whether requests are to be held back.
    pub(super) fn is_active(&self, now: Instant) -> bool {
        self.0.lock().is_some_and(|pause| now < pause.until)
    }

    /// Records that the token was refused. Requests that were in flight together count once.
    pub(super) fn record_refusal(&self, now: Instant) {
        let mut pause = self.0.lock();
        let mut backoff = match *pause {
            Some(before) if now < before.until => return,
            Some(before) => before.backoff,
            None => REFUSAL_BACKOFF,
        };
        *pause = Some(Pause { until: now + backoff.next_wait(), backoff });
    }

    /// Records that the token was accepted.
    pub(super) fn reset(&self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_token_is_tried_again_ever_more_rarely_until_it_is_taken() {
        let (refused, mut now) = (AuthBackoff::default(), Instant::now());
        assert!(!refused.is_active(now));
        for seconds in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
            refused.record_refusal(now);
            // Another request that was in flight.
            refused.record_refusal(now);
            let long = Duration::from_secs(seconds);
            assert!(
                refused.is_active(now + long - Duration::from_millis(1)) && !refused.is_active(now + long),
                "{seconds}"
            );
            now += long;
        }
        refused.reset();
        refused.record_refusal(now);
        assert!(!refused.is_active(now + Duration::from_secs(60)));
    }
}
