//! Waits for a server that is starting up or loading its model, which takes a local server seconds to minutes. This
//! limits the time, not the number of attempts.

use std::time::Duration;

use chorus_base::Ticks;

use super::error::{CallError, ErrorClass};
use super::retry::RetryPolicy;

/// State of the wait of one call.
#[derive(Debug)]
pub(crate) struct StartupWait {
    limit: Duration,
    /// When the server was first seen to be starting.
    since: Option<Ticks>,
    tries: u32,
}

/// The next wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NextWait {
    pub until: Ticks,
    /// How long the call has waited for the server so far.
    pub waited: Duration,
}

impl StartupWait {
    /// Creates a wait limited to `most`; zero disables it.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, since: None, tries: 0 }
    }

    /// Returns whether `error` means that the server is starting.
    pub(crate) fn applies_to(&self, error: &CallError) -> bool {
        !self.limit.is_zero() && matches!(error.class, ErrorClass::ConnectionRefused | ErrorClass::Loading)
    }

    /// Returns the next wait; `None` if the limit is reached.
    pub(crate) fn next_wait(&mut self, now: Ticks, chance: f64) -> Option<NextWait> {
        let end = self.since.get_or_insert(now).after(self.limit);
        if now >= end {
            return None;
        }
        self.tries += 1;
        let until = now.after(RetryPolicy::default().backoff(self.tries, chance)).min(end);
        Some(NextWait { until, waited: self.waited(now) })
    }

    /// Returns how long the call has waited for the server.
    pub(crate) fn waited(&self, now: Ticks) -> Duration {
        let since = self.since.unwrap_or(now);
        Duration::from_nanos(u64::try_from(now.0.saturating_sub(since.0)).unwrap_or(0))
    }
}

/// Note for the user about a server that is starting.
pub(crate) fn waiting_note(provider: &str, class: ErrorClass, waited: Duration) -> String {
    let what = match class {
        ErrorClass::Loading => "is loading the model",
        _ => "is not responding yet (connection refused)",
    };
    format!("the server {provider} {what}, {} s", waited.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(at: Ticks) -> f64 {
        at.0 as f64 / 1e9
    }

    #[test]
    fn it_lasts_a_minute_and_its_last_wait_ends_with_it() {
        for (chance, due) in [
            (
                0.0,
                vec![
                    0.25, 0.75, 1.75, 3.75, 7.75, 11.75, 15.75, 19.75, 23.75, 27.75, 31.75, 35.75, 39.75, 43.75, 47.75,
                    51.75, 55.75, 59.75, 60.0,
                ],
            ),
            (1.0, vec![0.5, 1.5, 3.5, 7.5, 15.5, 23.5, 31.5, 39.5, 47.5, 55.5, 60.0]),
        ] {
            let mut patience = StartupWait::new(Duration::from_secs(60));
            let (mut now, mut ends) = (Ticks(0), Vec::new());
            while let Some(wait) = patience.next_wait(now, chance) {
                assert_eq!(wait.waited.as_secs_f64(), seconds(now));
                now = wait.until;
                ends.push(seconds(now));
            }
            assert_eq!(ends, due);
        }
    }

    #[test]
    fn it_covers_what_passes_when_a_server_is_up() {
        let covers = |most, class| StartupWait::new(Duration::from_secs(most)).applies_to(&CallError::new(class, ""));
        assert!(covers(60, ErrorClass::ConnectionRefused) && covers(60, ErrorClass::Loading));
        assert!(
            !covers(60, ErrorClass::Network) && !covers(60, ErrorClass::Overloaded) && !covers(0, ErrorClass::Loading)
        );
    }

    #[test]
    fn it_is_told_how_long_that_takes() {
        let told = waiting_note("local", ErrorClass::Loading, Duration::from_millis(12_900));
        assert_eq!(told, "the server local is loading the model, 12 s");
    }
}
