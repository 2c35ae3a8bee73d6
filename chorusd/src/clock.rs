//! The source of the time, which tests replace by their own.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use jiff::{Timestamp, Unit};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use uuid::Uuid;

/// Nanoseconds of a monotonic clock that also counts while the machine sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub i64);

impl Ticks {
    /// Returns the time `wait` later.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// Returns the time since `earlier`, or zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Creates an id that sorts by the wall clock. On a machine whose clock is before 1970 the ids have the time 0.
#[must_use]
pub fn new_id() -> Uuid {
    new_id_at(SystemTime::now())
}

#[expect(clippy::disallowed_methods, reason = "this is what stands before it")]
fn new_id_at(now: SystemTime) -> Uuid {
    match now.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(_) => Uuid::now_v7(),
        Err(_) => Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 0, 0)),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_gives_ids_all_the_same() {
        let early = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        let (one, two) = (new_id_at(early), new_id_at(early));
        assert_ne!(one, two);
        assert_eq!(one.get_version_num(), 7);
        assert!(one < new_id());
    }
}
