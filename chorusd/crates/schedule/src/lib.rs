//! When schedules are due: cron expressions in a time zone, fixed intervals, and single times.
//!
//! Pure functions of the last time and the rule. Which schedules exist, when they ran, and the wait for the next one are elsewhere.

#![warn(unreachable_pub)]

mod civil_times;
mod cron;

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use cron::{CronExpression, CronProblem};

/// The shortest interval between two runs of a schedule.
pub const MIN_INTERVAL: Duration = Duration::from_secs(60);

/// The longest interval, and the longest time until a single run: ten years.
pub const MAX_INTERVAL: Duration = Duration::from_secs(10 * 366 * 86_400);

/// When a schedule is due.
#[derive(Debug, Clone)]
pub enum Timetable {
    /// At the times of a cron expression in a time zone.
    Cron { expression: CronExpression, zone: TimeZone },
    /// Each time that this interval has passed since `start`.
    Every { start: Timestamp, interval: Duration },
    /// Once.
    Once { at: Timestamp },
}

impl Timetable {
    /// Returns the first time after `after`; `None` if there will be none.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron { expression, zone } => expression.next_after(after, zone),
            Self::Every { start, interval } => next_on_grid(*start, *interval, after),
            Self::Once { at } => Some(*at).filter(|at| *at > after),
        }
    }

    /// Returns the first `count` times after `after`.
    #[must_use]
    pub fn next_times(&self, after: Timestamp, count: usize) -> Vec<Timestamp> {
        let mut times: Vec<Timestamp> = Vec::new();
        while times.len() < count {
            match self.next_after(times.last().copied().unwrap_or(after)) {
                Some(next) => times.push(next),
                None => break,
            }
        }
        times
    }
}

/// Finds a time zone by its name in the database of zones, for example `Europe/Berlin`.
#[must_use]
pub fn find_zone(name: &str) -> Option<TimeZone> {
    let zone = TimeZone::get(name).ok()?;
    zone.iana_name().is_some().then_some(zone)
}

/// Returns the name of a zone in the database of zones; `None` if it has none.
#[must_use]
pub fn zone_name(zone: &TimeZone) -> Option<&str> {
    // What jiff calls a zone that it cannot find out.
    zone.iana_name().filter(|name| *name != "Etc/Unknown")
}

/// Returns the first time after `after` that is a whole number of intervals, at least one, after `start`.
fn next_on_grid(start: Timestamp, interval: Duration, after: Timestamp) -> Option<Timestamp> {
    let step = i128::try_from(interval.as_nanos()).ok().filter(|step| *step > 0)?;
    let (start, after) = (start.as_nanosecond(), after.as_nanosecond());
    let passed = (after - start).div_euclid(step) + 1;
    Timestamp::from_nanosecond(start + passed.max(1) * step).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn intervals_count_from_the_start_and_do_not_drift() {
        let start = time("2026-01-01T10:00:00.25Z");
        let every = Timetable::Every { start, interval: Duration::from_secs(4 * 3600) };
        let next = |after: &str| every.next_after(time(after)).unwrap();
        assert_eq!(next("2026-01-01T10:00:00.25Z"), time("2026-01-01T14:00:00.25Z"));
        assert_eq!(next("2026-01-01T14:00:00.25Z"), time("2026-01-01T18:00:00.25Z"));
        assert_eq!(next("2026-01-01T15:59:59Z"), time("2026-01-01T18:00:00.25Z"), "a late run moves nothing");
        assert_eq!(next("2027-03-05T00:00:00Z"), time("2027-03-05T02:00:00.25Z"));
        assert_eq!(next("2020-01-01T00:00:00Z"), time("2026-01-01T14:00:00.25Z"), "never before the first one");
    }

    #[test]
    fn a_single_time_comes_once() {
        let at = time("2026-01-01T00:20:00Z");
        let once = Timetable::Once { at };
        assert_eq!(once.next_after(time("2026-01-01T00:00:00Z")), Some(at));
        assert_eq!(once.next_after(at), None);
        assert_eq!(once.next_times(time("2026-01-01T00:00:00Z"), 3), [at]);
    }

    #[test]
    fn zones_are_found_by_name() {
        assert_eq!(find_zone("Europe/Berlin").as_ref().and_then(zone_name), Some("Europe/Berlin"));
        assert_eq!(find_zone("UTC").as_ref().and_then(zone_name), Some("UTC"));
        for unknown in ["Europe/Atlantis", "", "+02:00", "../etc/passwd", "Europe/Berlin "] {
            assert!(find_zone(unknown).is_none(), "{unknown:?}");
        }
        assert_eq!((zone_name(&TimeZone::fixed(jiff::tz::offset(2))), zone_name(&TimeZone::unknown())), (None, None));
    }
}
