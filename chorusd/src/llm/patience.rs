//! Patience with a server that is on its way up: one that was just started, or that loads its model, which takes a local server seconds
//! to minutes. Tries are not counted meanwhile, only time is.

use std::time::Duration;

use super::error::{CallError, Class};
use super::retry::Policy;
use crate::clock::Ticks;

/// The patience of one call.
#[derive(Debug)]
pub struct Patience {
    most: Duration,
    /// When the server was first seen to be on its way.
    since: Option<Ticks>,
    tries: u32,
}

/// One wait.
#[derive(Debug, PartialEq, Eq)]
pub struct Wait {
    pub until: Ticks,
    /// How long the server was waited for before.
    pub waited: Duration,
}

impl Patience {
    /// Patience for `most` in all; none at all where that is zero.
    pub fn new(most: Duration) -> Self {
        Self { most, since: None, tries: 0 }
    }

    /// Returns true where `error` is one that is waited out.
    pub fn covers(&self, error: &CallError) -> bool {
        !self.most.is_zero() && matches!(error.class, Class::Refused | Class::Loading)
    }

    /// Returns the next wait; `None`: all of it is used up.
    pub fn wait(&mut self, now: Ticks, chance: f64) -> Option<Wait> {
        let end = self.since.get_or_insert(now).after(self.most);
        if now >= end {
            return None;
        }
        self.tries += 1;
        let until = now.after(Policy::default().backoff(self.tries, chance)).min(end);
        Some(Wait { until, waited: self.waited(now) })
    }

    /// Returns how long the server was waited for.
    pub fn waited(&self, now: Ticks) -> Duration {
        let since = self.since.unwrap_or(now);
        Duration::from_nanos(u64::try_from(now.0.saturating_sub(since.0)).unwrap_or(0))
    }
}

/// What whoever listens is told of a server that is waited for.
pub fn note(provider: &str, class: Class, waited: Duration) -> String {
    let what = match class {
        Class::Loading => "is loading the model",
        _ => "does not answer yet (connection refused)",
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
            let mut patience = Patience::new(Duration::from_secs(60));
            let (mut now, mut ends) = (Ticks(0), Vec::new());
            while let Some(wait) = patience.wait(now, chance) {
                assert_eq!(wait.waited.as_secs_f64(), seconds(now));
                now = wait.until;
                ends.push(seconds(now));
            }
            assert_eq!(ends, due);
        }
    }

    #[test]
    fn it_covers_what_passes_when_a_server_is_up() {
        let covers = |most, class| Patience::new(Duration::from_secs(most)).covers(&CallError::new(class, ""));
        assert!(covers(60, Class::Refused) && covers(60, Class::Loading));
        assert!(!covers(60, Class::Network) && !covers(60, Class::Overloaded) && !covers(0, Class::Loading));
    }

    #[test]
    fn it_is_told_how_long_that_takes() {
        let told = note("local", Class::Loading, Duration::from_millis(12_900));
        assert_eq!(told, "the server local is loading the model, 12 s");
    }
}
