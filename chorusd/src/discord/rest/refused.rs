//! A token that Discord does not take: it is not hammered with it, and asked again all the same, because what stands before Discord may
//! have said so.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// After the first refusal; twice as long after each that follows.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3600);

/// Until when nothing is asked.
#[derive(Debug, Default)]
pub struct Refused(Mutex<Option<Pause>>);

#[derive(Debug, Clone, Copy)]
struct Pause {
    until: Instant,
    long: Duration,
}

impl Refused {
    /// Whether nothing is to be asked now.
    pub fn holds(&self, now: Instant) -> bool {
        self.pause().is_some_and(|pause| now < pause.until)
    }

    /// The token was refused. Requests that were on their way together count once.
    pub fn again(&self, now: Instant) {
        let mut pause = self.pause();
        let long = match *pause {
            Some(before) if now < before.until => return,
            Some(before) => (before.long * 2).min(LONGEST),
            None => FIRST,
        };
        *pause = Some(Pause { until: now + long, long });
    }

    /// The token was taken.
    pub fn over(&self) {
        *self.pause() = None;
    }

    fn pause(&self) -> MutexGuard<'_, Option<Pause>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_token_is_tried_again_ever_more_rarely_until_it_is_taken() {
        let (refused, mut now) = (Refused::default(), Instant::now());
        assert!(!refused.holds(now));
        for seconds in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
            refused.again(now);
            // Another that was on its way.
            refused.again(now);
            let long = Duration::from_secs(seconds);
            assert!(refused.holds(now + long - Duration::from_millis(1)) && !refused.holds(now + long), "{seconds}");
            now += long;
        }
        refused.over();
        refused.again(now);
        assert!(!refused.holds(now + FIRST));
    }
}
