//! A token that Discord does not take: it is not hammered with it, and asked again all the same, because what stands before Discord may
//! have said so.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// After the first refusal; twice as long after each that follows.
const INITIAL_PAUSE: Duration = Duration::from_secs(60);
const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// Until when nothing is asked.
#[derive(Debug, Default)]
pub struct AuthBackoff(Mutex<Option<Pause>>);

#[derive(Debug, Clone, Copy)]
struct Pause {
    until: Instant,
    duration: Duration,
}

impl AuthBackoff {
    /// Whether nothing is to be asked now.
    pub fn is_active(&self, now: Instant) -> bool {
        self.lock().is_some_and(|pause| now < pause.until)
    }

    /// The token was refused. Requests that were on their way together count once.
    pub fn record_refusal(&self, now: Instant) {
        let mut pause = self.lock();
        let long = match *pause {
            Some(before) if now < before.until => return,
            Some(before) => (before.duration * 2).min(MAX_PAUSE),
            None => INITIAL_PAUSE,
        };
        *pause = Some(Pause { until: now + long, duration: long });
    }

    /// The token was taken.
    pub fn reset(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Pause>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
            // Another that was on its way.
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
        assert!(!refused.is_active(now + INITIAL_PAUSE));
    }
}
