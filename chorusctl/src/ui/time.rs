//! Formats times. The time zone is loaded only when a local time is shown, because that takes longer than the rest of a
//! short command.

use std::cell::OnceCell;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::local_timezone;

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

/// Formats a duration in its largest unit, rounded down.
#[must_use]
pub fn format_rounded(seconds: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let (count, unit) = match seconds {
        ..MINUTE => (seconds, "s"),
        MINUTE..HOUR => (seconds / MINUTE, "min"),
        HOUR..DAY => (seconds / HOUR, "h"),
        DAY.. if seconds < 60 * DAY => (seconds / DAY, if seconds < 2 * DAY { "day" } else { "days" }),
        _ if seconds < 730 * DAY => (seconds / (30 * DAY), "months"),
        _ => (seconds / (365 * DAY), "years"),
    };
    format!("{count} {unit}")
}

/// Formats a duration in its two largest units, for example `3 h 12 min`.
#[must_use]
pub fn format_two_units(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let first = units.iter().position(|(_, size)| seconds >= *size).unwrap_or(units.len() - 1);
    let (name, size) = units[first];
    let mut text = format!("{} {name}", seconds / size);
    if let Some((name, smaller)) = units.get(first + 1) {
        let rest = seconds % size / smaller;
        if rest > 0 {
            text.push_str(&format!(" {rest} {name}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_grow_their_units() {
        let shown = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 172_800, 5_184_000, 63_072_000].map(format_rounded);
        assert_eq!(shown, ["0 s", "59 s", "1 min", "59 min", "1 h", "23 h", "1 day", "2 days", "2 months", "2 years"]);
    }

    #[test]
    fn uptime_has_two_units() {
        assert_eq!(
            [0, 59, 61, 3_600, 11_520, 90_000].map(format_two_units),
            ["0 s", "59 s", "1 min 1 s", "1 h", "3 h 12 min", "1 d 1 h"]
        );
    }

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
