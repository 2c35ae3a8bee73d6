//! Tests of the timers by themselves.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use chorus_base::Ticks;
use chorus_clock::{Clock, TimeSource};
use futures_util::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use uuid::Uuid;

use super::rng::Rng;
use crate::agent::idle_expiry::DeadlineTimers;

fn agent(n: u64) -> Uuid {
    Uuid::from_u128(u128::from(n))
}

#[test]
fn ten_thousand_timers_of_one_second_ring_once_each_when_they_are_due() {
    let (timers, mut dice) = (DeadlineTimers::default(), Rng::new(7));
    let second = Duration::from_secs(1).as_nanos();
    let second = u64::try_from(second).expect("a number");
    let dues: Vec<Ticks> = (0..10_000).map(|_| Ticks(dice.below(second).cast_signed())).collect();
    let began = Instant::now();
    for (n, due) in dues.iter().enumerate() {
        timers.set(agent(n as u64), Some(*due));
    }
    // One millisecond at a time: each timer fires in the one in which it is due.
    let (mut rung, mut last) = (HashSet::new(), Ticks(-1));
    for n in 0..=1000 {
        let now = Ticks(n * 1_000_000);
        for (agent, due) in timers.take_due(now) {
            assert!(last < due && due <= now, "{due:?} rang at {now:?}");
            assert!(rung.insert(agent), "{agent} rang twice");
        }
        last = now;
    }
    assert_eq!(rung.len(), 10_000);
    assert!(timers.take_due(Ticks(i64::MAX)).is_empty());
    // Far more time than needed even in a debug build: no operation looks at all timers.
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[test]
fn ten_thousand_timers_of_one_instant_ring_together() {
    let timers = DeadlineTimers::default();
    for n in 0..10_000 {
        timers.set(agent(n), Some(Ticks(5)));
    }
    assert!(timers.take_due(Ticks(4)).is_empty());
    assert_eq!(timers.take_due(Ticks(5)).len(), 10_000);
    assert!(timers.take_due(Ticks(6)).is_empty());
}

#[test]
fn timers_that_are_due_come_in_the_order_of_the_agents() {
    let timers = DeadlineTimers::default();
    for (n, due) in [(3, 5), (1, 6), (2, 4), (4, 8)] {
        timers.set(agent(n), Some(Ticks(due)));
    }
    assert_eq!(timers.take_due(Ticks(7)), [(agent(1), Ticks(6)), (agent(2), Ticks(4)), (agent(3), Ticks(5))]);
}

#[test]
fn a_timer_that_rang_is_not_set_again_by_its_own_deadline() {
    let timers = DeadlineTimers::default();
    timers.set(agent(1), Some(Ticks(5)));
    assert_eq!(timers.take_due(Ticks(5)), [(agent(1), Ticks(5))]);
    // The actor sets its deadline at every step of the expiry.
    timers.set(agent(1), Some(Ticks(5)));
    assert!(timers.take_due(Ticks(6)).is_empty());
    timers.set(agent(1), Some(Ticks(9)));
    assert_eq!(timers.take_due(Ticks(9)), [(agent(1), Ticks(9))]);
}

#[test]
fn another_try_gives_way_to_a_newer_deadline_and_to_the_end_of_the_context() {
    let timers = DeadlineTimers::default();
    timers.set(agent(1), Some(Ticks(5)));
    assert_eq!(timers.take_due(Ticks(5)).len(), 1);
    timers.rearm(agent(1), Ticks(5), Ticks(7));
    assert_eq!(timers.take_due(Ticks(7)), [(agent(1), Ticks(5))]);
    timers.set(agent(1), Some(Ticks(20)));
    timers.rearm(agent(1), Ticks(5), Ticks(10));
    assert!(timers.take_due(Ticks(10)).is_empty());
    assert_eq!(timers.take_due(Ticks(20)).len(), 1);
    timers.set(agent(1), None);
    timers.rearm(agent(1), Ticks(20), Ticks(30));
    assert!(timers.take_due(Ticks(30)).is_empty());
    assert_eq!(timers.due(agent(1)), None);
}

/// A clock that stands still.
struct StoppedClock;

impl TimeSource for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn ticks(&self) -> Ticks {
        Ticks(0)
    }

    fn sleep_until(&self, _: Ticks) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn only_a_deadline_before_the_one_that_is_waited_for_ends_the_wait() {
    let (timers, clock) = (DeadlineTimers::default(), Clock::new(StoppedClock));
    timers.set(agent(1), Some(Ticks(5)));
    let mut wait = std::pin::pin!(timers.wait_for_timer(&clock));
    assert!(wait.as_mut().now_or_never().is_none());
    for (n, due) in [(1, 9), (2, 5), (3, 7)] {
        timers.set(agent(n), Some(Ticks(due)));
        assert!(wait.as_mut().now_or_never().is_none(), "{due}");
    }
    timers.set(agent(4), Some(Ticks(4)));
    assert!(wait.now_or_never().is_some());
    // The same for one that waits without any deadline.
    let timers = DeadlineTimers::default();
    let mut wait = std::pin::pin!(timers.wait_for_timer(&clock));
    assert!(wait.as_mut().now_or_never().is_none());
    timers.set(agent(1), Some(Ticks(9)));
    assert!(wait.now_or_never().is_some());
}
