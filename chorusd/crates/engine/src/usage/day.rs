//! Calendar days in a time zone.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};

/// A day from midnight to midnight in a time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day {
    pub start: Timestamp,
    /// The start of the next day.
    pub end: Zoned,
}

impl Day {
    /// Returns the day that contains `now`.
    #[must_use]
    pub fn containing(now: Timestamp, zone: TimeZone) -> Self {
        let here = now.to_zoned(zone);
        // There is always a midnight, except at the ends of the calendar's range.
        let start = here.start_of_day().unwrap_or_else(|_| here.clone());
        let end = start.checked_add(1.day()).and_then(|next| next.start_of_day()).unwrap_or(here);
        Self { start: start.timestamp(), end }
    }

    /// Whether the day contains `now`.
    #[must_use]
    pub fn contains(&self, now: Timestamp) -> bool {
        self.start <= now && now < self.end.timestamp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_end_at_midnight_also_when_the_clocks_change() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        for (now, start, end) in [
            ("2026-02-27T12:00:00Z", "2026-02-26T23:00:00Z", "2026-02-27T23:00:00Z"),
            ("2026-02-27T23:00:00Z", "2026-02-27T23:00:00Z", "2026-02-28T23:00:00Z"),
            ("2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
            ("2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
        ] {
            let [now, start, end] = [now, start, end].map(|time| time.parse::<Timestamp>().unwrap());
            let day = Day::containing(now, zone.clone());
            assert_eq!((day.start, day.end.timestamp()), (start, end));
            assert!(day.contains(now) && day.contains(start) && !day.contains(end));
        }
    }
}
