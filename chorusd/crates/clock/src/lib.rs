//! The source of the time, which tests replace by their own. Wall-clock time for people, and a clock that counts sleep for
//! deadlines; the two never mix.

#![warn(unreachable_pub)]

use std::sync::Arc;
use std::time::Duration;

use chorus_base::Ticks;
use futures_util::future::BoxFuture;
use jiff::{Timestamp, Unit};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// A source of time.
pub trait TimeSource: Send + Sync {
    /// Returns the wall-clock time.
    fn now(&self) -> Timestamp;
    /// Returns the time of the clock that counts sleep.
    fn ticks(&self) -> Ticks;
    /// Waits until that clock reaches `at`; may end early.
    fn sleep_until(&self, at: Ticks) -> BoxFuture<'_, ()>;
}

/// A shared handle to a source of time.
#[derive(Clone)]
pub struct Clock(Arc<dyn TimeSource>);

impl Clock {
    /// Returns the clock of the system. Wall-clock times are in whole milliseconds.
    #[must_use]
    pub fn system() -> Self {
        Self::new(SystemTimeSource)
    }

    pub fn new(time: impl TimeSource + 'static) -> Self {
        Self(Arc::new(time))
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.now()
    }

    #[must_use]
    pub fn ticks(&self) -> Ticks {
        self.0.ticks()
    }

    pub async fn sleep_until(&self, at: Ticks) {
        self.0.sleep_until(at).await;
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

struct SystemTimeSource;

impl TimeSource for SystemTimeSource {
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        now.round(Unit::Millisecond).unwrap_or(now)
    }

    fn ticks(&self) -> Ticks {
        let now = clock_gettime(ClockId::Boottime);
        Ticks(now.tv_sec * 1_000_000_000 + now.tv_nsec)
    }

    fn sleep_until(&self, at: Ticks) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // The timers of the runtime do not count while the machine sleeps.
            if wait_for_boottime(at).await.is_err() {
                let left = u64::try_from(at.0.saturating_sub(self.ticks().0)).unwrap_or(0);
                tokio::time::sleep(Duration::from_nanos(left)).await;
            }
        })
    }
}

/// Waits with a timerfd on the boot-time clock.
async fn wait_for_boottime(at: Ticks) -> std::io::Result<()> {
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    // Zero would disarm the timer.
    let at = at.0.max(1);
    let it_value = Timespec { tv_sec: at / 1_000_000_000, tv_nsec: at % 1_000_000_000 };
    let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })?;
    #[expect(deprecated, reason = "sound for a descriptor that it owns; what replaces it is unsafe code")]
    let timer = AsyncFd::new(timer)?;
    let _ready = timer.readable().await?;
    Ok(())
}
