//! A clock whose hands a test moves.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chorusd::clock::{Clock, Ticks, TimeSource};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

/// Stands still until it is moved; whoever sleeps by it wakes when it is.
#[derive(Clone)]
pub struct ManualClock(Arc<Inner>);

struct Inner {
    state: Mutex<ClockState>,
    changed: Notify,
}

#[derive(Debug, Clone, Copy)]
struct ClockState {
    now: Timestamp,
    ticks: Ticks,
}

impl ManualClock {
    /// A clock at `now`, on a machine that has run for a day.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        let ticks = Ticks(0).after(Duration::from_secs(24 * 60 * 60));
        Self(Arc::new(Inner { state: Mutex::new(ClockState { now, ticks }), changed: Notify::new() }))
    }

    /// What a daemon is given.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock::new(self.clone())
    }

    /// Time passes, all at once, as over a sleep of the machine.
    pub fn advance(&self, time: Duration) {
        self.update(|stand| {
            stand.now += time;
            stand.ticks = stand.ticks.after(time);
        });
    }

    /// Somebody sets the time of day; no time passes.
    pub fn shift_time_of_day(&self, by: SignedDuration) {
        self.update(|stand| stand.now += by);
    }

    fn update(&self, change: impl FnOnce(&mut ClockState)) {
        change(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.changed.notify_waiters();
    }

    fn state(&self) -> ClockState {
        *self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TimeSource for ManualClock {
    fn now(&self) -> Timestamp {
        self.state().now
    }

    fn ticks(&self) -> Ticks {
        self.state().ticks
    }

    fn sleep_until(&self, at: Ticks) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            loop {
                // Listens before it looks: a move in between is not missed.
                let mut moved = pin!(self.0.changed.notified());
                moved.as_mut().enable();
                if self.ticks() >= at {
                    return;
                }
                moved.await;
            }
        })
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state().fmt(f)
    }
}
