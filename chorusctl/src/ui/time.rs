//! Formats times. The time zone is loaded only when a local time is shown, because that takes longer than the rest of a
//! short command.

use std::cell::OnceCell;

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

pub use chorus_terminal_text::duration::{format_rounded, format_two_units};

use super::local_timezone;

/// The format of a time whose zone matters, for example `Sat 2026-11-21 14:03 CET`.
pub const ZONED_TIME: &str = "%a %Y-%m-%d %H:%M %Z";

/// The current time, and the time zone once it is needed.
#[derive(Debug)]
pub struct Clock {
    now: Timestamp,
    zone: OnceCell<TimeZone>,
}

impl Clock {
    /// Creates a clock with the current time.
    #[must_use]
    pub fn now() -> Self {
        Self { now: Timestamp::now(), zone: OnceCell::new() }
    }

    /// Reads the current time again; keeps the zone.
    pub fn refresh(&mut self) {
        self.now = Timestamp::now();
    }

    /// A clock for tests: 2026-11-21 13:00 UTC.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        let now = "2026-11-21T13:00:00Z".parse().unwrap_or_default();
        Self { now, zone: OnceCell::from(TimeZone::UTC) }
    }

    /// Formats local date and time, for example `2026-11-21 14:03`.
    #[must_use]
    pub fn local_date_time(&self, time: Timestamp) -> String {
        self.format(time, "%Y-%m-%d %H:%M")
    }

    /// Formats local date and time with the day of the week and the time zone, for example `Sat 2026-11-21 14:03 CET`.
    #[must_use]
    pub fn zoned_date_time(&self, time: Timestamp) -> String {
        self.format(time, ZONED_TIME)
    }

    /// Returns the offset of local time at `time`.
    #[must_use]
    pub fn offset(&self, time: Timestamp) -> Offset {
        self.zone.get_or_init(local_timezone::load).to_offset(time)
    }

    /// Formats the local date.
    #[must_use]
    pub fn local_date(&self, time: Timestamp) -> String {
        self.format(time, "%Y-%m-%d")
    }

    /// Formats the local time of day, for example `14:03`.
    #[must_use]
    pub fn local_time(&self, time: Timestamp) -> String {
        self.format(time, "%H:%M")
    }

    fn format(&self, time: Timestamp, format: &str) -> String {
        let zone = self.zone.get_or_init(local_timezone::load);
        time.to_zoned(zone.clone()).strftime(format).to_string()
    }

    /// Returns true if `time` is less than so many minutes ago.
    #[must_use]
    pub fn is_recent(&self, time: Timestamp, minutes: i64) -> bool {
        self.now.as_second() - time.as_second() < minutes * 60
    }

    /// Formats how long ago `time` was, for example `3 min ago`.
    #[must_use]
    pub fn ago(&self, time: Timestamp) -> String {
        match self.now.as_second() - time.as_second() {
            // Clocks may be adjusted: times slightly in the future are fine.
            ..10 => "just now".to_owned(),
            seconds => format!("{} ago", format_rounded(seconds.unsigned_abs())),
        }
    }

    /// Formats how long it is until `time`, for example `27 min`.
    #[must_use]
    pub fn until(&self, time: Timestamp) -> String {
        match time.as_second() - self.now.as_second() {
            ..=0 => "now".to_owned(),
            seconds @ ..60 => format_rounded(seconds.unsigned_abs()),
            // Rounded up, so that two minutes are not one a second later.
            seconds => format_rounded(seconds.unsigned_abs().next_multiple_of(60)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_from_the_present() {
        let clock = Clock { now: Timestamp::UNIX_EPOCH, zone: OnceCell::from(TimeZone::UTC) };
        let at = |second| Timestamp::from_second(second).unwrap_or_default();
        assert_eq!(clock.ago(at(-200)), "3 min ago");
        assert_eq!(clock.ago(at(5)), "just now");
        assert_eq!([1_700, 119, 60, 59].map(|second| clock.until(at(second))), ["29 min", "2 min", "1 min", "59 s"]);
        assert_eq!(clock.until(at(-1)), "now");
        assert_eq!(clock.local_date_time(at(3_600)), "1970-01-01 01:00");
    }
}
