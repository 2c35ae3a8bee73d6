//! Section headings: one for each query, and one for the messages before the first query.

use std::fmt;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// The kind of section that a heading opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// A user's message and everything up to the next one. The number counts from 1.
    Query(u64),
    /// The start of a context that continues another session.
    Restored,
    /// Messages before the first query.
    Opening,
}

/// The time in a heading, in UTC. A heading without a date has that of the heading before it, or the day after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadingTime {
    date: Option<Date>,
    time: Time,
}

impl HeadingTime {
    /// Returns the heading's time after a heading, or a header, of the time `before`.
    fn of(at: Timestamp, before: Timestamp) -> Self {
        let second = |at: Timestamp| {
            let at = at.to_zoned(TimeZone::UTC);
            (at.date(), Time::constant(at.hour(), at.minute(), at.second(), 0))
        };
        let ((date, time), (date_before, time_before)) = (second(at), second(before));
        // An earlier time of day would be taken for the next day.
        let same_day = date == date_before && time >= time_before;
        Self { date: (!same_day).then_some(date), time }
    }

    /// Returns the instant. Without a date, it is the first one at this time of day that is not before `before`.
    #[must_use]
    pub(crate) fn resolve(self, before: Option<Timestamp>) -> Option<Timestamp> {
        let instant = |date: Date| Some(date.to_datetime(self.time).to_zoned(TimeZone::UTC).ok()?.timestamp());
        if let Some(date) = self.date {
            return instant(date);
        }
        let before = before?;
        let at = instant(before.to_zoned(TimeZone::UTC).date())?;
        // Headings have no fractions of a second.
        let passed = at.checked_add(1.second()).is_ok_and(|end| end <= before);
        if passed { at.checked_add(24.hours()).ok() } else { Some(at) }
    }

    /// Parses `14:58:03`, or `2026-03-02 14:58:03`.
    fn parse(text: &str) -> Option<Self> {
        let (date, time) = match text.split_once(' ') {
            Some((date, time)) => (Some(date.parse().ok()?), time),
            None => (None, text),
        };
        Some(Self { date, time: time.parse().ok()? })
    }
}

impl fmt::Display for HeadingTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(date) = self.date {
            write!(f, "{date} ")?;
        }
        write!(f, "{}", self.time)
    }
}

impl Section {
    /// Formats the heading, for example `## Query 3 (14:58:03)`, with the time in UTC. The date is added if it is not that
    /// of `before`, the time of the heading before it.
    #[must_use]
    pub(crate) fn heading(self, at: Timestamp, before: Timestamp) -> String {
        let time = HeadingTime::of(at, before);
        match self {
            Self::Query(number) => format!("## Query {number} ({time})"),
            Self::Restored => format!("## Session Restored ({time})"),
            Self::Opening => format!("## Opening ({time})"),
        }
    }

    /// Parses a heading line. Returns the time if the line has one.
    #[must_use]
    pub(crate) fn parse(line: &str) -> Option<(Self, Option<HeadingTime>)> {
        let rest = line.strip_prefix("## ")?.trim_end();
        let (name, at) = match rest.rsplit_once(" (") {
            Some((name, at)) => (name, Some(HeadingTime::parse(at.strip_suffix(')')?)?)),
            None => (rest, None),
        };
        let section = match name {
            "Session Restored" => Self::Restored,
            "Opening" => Self::Opening,
            name => Self::Query(name.strip_prefix("Query ")?.parse().ok()?),
        };
        Some((section, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_read_as_they_are_written() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        for (time, before, shown) in [
            ("2026-03-02T14:58:03.117Z", "2026-03-02T14:58:03.117Z", "14:58:03"),
            ("2026-03-02T14:58:03Z", "2026-03-02T00:00:00Z", "14:58:03"),
            ("2026-03-02T14:58:03.1Z", "2026-03-02T14:58:03.2Z", "14:58:03"),
            ("2026-03-03T00:01:00Z", "2026-03-02T23:59:00Z", "2026-03-03 00:01:00"),
            ("2026-04-02T14:58:03Z", "2026-03-02T14:58:03Z", "2026-04-02 14:58:03"),
            ("2026-03-02T14:58:03Z", "2026-03-02T14:58:05Z", "2026-03-02 14:58:03"),
        ] {
            for section in [Section::Query(12), Section::Restored, Section::Opening] {
                let line = section.heading(at(time), at(before));
                assert!(line.ends_with(&format!(" ({shown})")), "{line}");
                let (read, read_at) = Section::parse(&line).unwrap();
                let second = at(time).strftime("%FT%TZ").to_string();
                assert_eq!(read, section, "{line}");
                assert_eq!(read_at.unwrap().resolve(Some(at(before))), Some(at(&second)), "{line}");
            }
        }
        assert_eq!(Section::parse("## Query 1"), Some((Section::Query(1), None)));
        for line in
            ["## Query", "## Query one", "## Query 1 (noon)", "## Query 1 (2026-03-02)", "# Query 1", "## Openings"]
        {
            assert_eq!(Section::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_time_of_day_is_of_this_day_or_of_the_next() {
        let at = |before: &str, time: &str| HeadingTime::parse(time).unwrap().resolve(before.parse().ok());
        assert_eq!(at("2025-12-30T23:59:50.5Z", "23:59:50"), "2025-12-30T23:59:50Z".parse().ok());
        assert_eq!(at("2025-12-30T23:59:50Z", "00:00:45"), "2025-12-31T00:00:45Z".parse().ok());
        // The last possible day has no next one.
        assert_eq!(at("9999-12-30T22:00:00Z", "21:59:59"), None);
        assert_eq!(at("9999-12-30T21:59:59Z", "22:00:00"), "9999-12-30T22:00:00Z".parse().ok());
        for time in ["00:00:00", "22:00:00", "22:00:01", "23:59:59", "9999-12-31 23:59:59"] {
            at("9999-12-30T22:00:00.9Z", time);
        }
    }
}
