//! A clock that runs as that of the system does, with a time of day that is wrong.

use std::pin::Pin;

use chorus_base::Ticks;
use chorus_clock::{Clock, TimeSource};
use jiff::{SignedDuration, Timestamp};

struct ShiftedClock {
    system: Clock,
    by: SignedDuration,
}

/// Returns the clock of the system, whose time of day is ahead by so much.
#[must_use]
pub fn clock_ahead(by: SignedDuration) -> Clock {
    Clock::new(ShiftedClock { system: Clock::system(), by })
}

impl TimeSource for ShiftedClock {
    fn now(&self) -> Timestamp {
        self.system.now() + self.by
    }

    fn ticks(&self) -> Ticks {
        self.system.ticks()
    }

    fn sleep_until(&self, at: Ticks) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.system.sleep_until(at))
    }
}
