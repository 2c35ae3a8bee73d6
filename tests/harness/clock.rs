//! A clock whose hands a test moves.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chorusd::clock::{Clock, Ticks, Time};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

/// Stands still until it is moved; whoever sleeps by it wakes when it is.
#[derive(Clone)]
pub struct Hands(Arc<Inner>);

struct Inner {
    stand: Mutex<Stand>,
    moved: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Stand {
    now: Timestamp,
    ticks: Ticks,
}

impl Hands {
    /// A clock at `now`, on a machine that has run for a day.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        let ticks = Ticks(0).after(Duration::from_secs(24 * 60 * 60));
        Self(Arc::new(Inner { stand: Mutex::new(Stand { now, ticks }), moved: Notify::new() }))
    }

    /// What a daemon is given.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock::new(self.clone())
    }

    /// Time passes, all at once, as over a sleep of the machine.
    pub fn pass(&self, time: Duration) {
        self.change(|stand| {
            stand.now += time;
            stand.ticks = stand.ticks.after(time);
        });
    }

    /// Somebody sets the time of day; no time passes.
    pub fn set(&self, by: SignedDuration) {
        self.change(|stand| stand.now += by);
    }

    fn change(&self, change: impl FnOnce(&mut Stand)) {
        change(&mut self.0.stand.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.moved.notify_waiters();
    }

    fn stand(&self) -> Stand {
        *self.0.stand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Time for Hands {
    fn now(&self) -> Timestamp {
        self.stand().now
    }

    fn ticks(&self) -> Ticks {
        self.stand().ticks
    }

    fn sleep_until(&self, at: Ticks) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            loop {
                // Listens before it looks: a move in between is not missed.
                let mut moved = pin!(self.0.moved.notified());
                moved.as_mut().enable();
                if self.ticks() >= at {
                    return;
                }
                moved.await;
            }
        })
    }
}

impl fmt::Debug for Hands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stand().fmt(f)
    }
}
