//! A clock that tests move by hand.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use chorus_base::Ticks;
use chorus_base::sync::Mutex;
use chorus_clock::{Clock, TimeSource};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

/// A clock that stands still until a test moves it, which wakes everything that sleeps on it.
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
    /// Creates a clock at `now`, on a machine that was booted a day ago.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        let ticks = Ticks(0).after(Duration::from_secs(24 * 60 * 60));
        Self(Arc::new(Inner { state: Mutex::new(ClockState { now, ticks }), changed: Notify::new() }))
    }

    /// Returns the clock to pass to a daemon.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock::new(self.clone())
    }

    /// Advances both clocks at once, as after the machine was suspended.
    pub fn advance(&self, time: Duration) {
        self.update(|stand| {
            stand.now += time;
            stand.ticks = stand.ticks.after(time);
        });
    }

    /// Changes the time of day; the monotonic clock stays.
    pub fn shift_time_of_day(&self, by: SignedDuration) {
        self.update(|stand| stand.now += by);
    }

    fn update(&self, change: impl FnOnce(&mut ClockState)) {
        change(&mut self.0.state.lock());
        self.0.changed.notify_waiters();
    }

    fn state(&self) -> ClockState {
        *self.0.state.lock()
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
                // Register for the notification before checking the time, so that no move in between is missed.
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
