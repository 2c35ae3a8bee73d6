//! Cron expressions of five fields, and the times that they stand for in a time zone.

use std::fmt;

use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions, parse_crontab_with};
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan as _};

use crate::civil_times;

/// Longest expression, in bytes.
const MAX_LENGTH: usize = 200;

/// Names for common expressions.
const ALIASES: [(&str, &str); 6] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
];

/// Number of fields.
const FIELDS: usize = 5;

/// A cron expression.
#[derive(Debug, Clone)]
pub struct CronExpression {
    /// Matches times of day as if they were of UTC, where each day has 24 hours.
    crontab: Crontab,
    /// The field of the hour starts with `*`.
    is_hourly: bool,
}

/// The reason why a text is not a cron expression, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronProblem {
    /// Number of the first character that is wrong, from 1.
    pub character: usize,
    pub reason: String,
}

impl fmt::Display for CronProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "character {}: {}", self.character, self.reason)
    }
}

impl CronExpression {
    /// Parses an expression of five fields, or one of the names `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`.
    ///
    /// # Errors
    /// The first place that is wrong.
    pub fn parse(text: &str) -> Result<Self, CronProblem> {
        let problem = |at: usize, reason: &str| {
            let character = text.get(..at).map_or(at, |before| before.chars().count()) + 1;
            Err(CronProblem { character, reason: reason.to_owned() })
        };
        if text.len() > MAX_LENGTH {
            return problem(MAX_LENGTH, &format!("it has more than {MAX_LENGTH} characters"));
        }
        if let Some(at) = text.find(|c: char| !c.is_ascii() || (c.is_control() && c != '\t')) {
            return problem(at, "not a character of a cron expression");
        }
        let trimmed = text.trim();
        let start = text.len() - text.trim_start().len();
        let known = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(trimmed));
        if trimmed.starts_with('@') && known.is_none() {
            return problem(start, "unknown name; known are @hourly, @daily, @weekly, @monthly, @yearly");
        }
        let fields = known.map_or(trimmed, |(_, fields)| fields);
        let places = field_places(fields);
        match places.get(FIELDS) {
            // Zones start with a letter.
            Some((_, last)) if places.len() == FIELDS + 1 && !last.starts_with(|c: char| c.is_ascii_uppercase()) => {
                return problem(start, "six fields; seconds are not taken, so leave out the first field");
            }
            Some((at, _)) => {
                return problem(start + at, "more than five fields; set the time zone separately");
            }
            None if places.len() < FIELDS => {
                let missing = ["minute", "hour", "day of the month", "month", "day of the week"][places.len()];
                return problem(start + fields.len(), &format!("five fields are needed: the {missing} is missing"));
            }
            None => {}
        }
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        let crontab = match parse_crontab_with(fields, options) {
            Ok(crontab) => crontab,
            Err(failure) => {
                let (at, reason) = place_and_reason(&failure.to_string());
                return problem(start + at, &reason);
            }
        };
        let is_hourly = places.get(1).is_some_and(|(_, hour)| hour.starts_with('*'));
        let expression = Self { crontab, is_hourly };
        if expression.next_civil(DateTime::constant(2024, 1, 1, 0, 0, 0, 0)).is_none() {
            return problem(start + places[2].0, "no year has such a day");
        }
        Ok(expression)
    }

    /// Returns the first time after `after`.
    ///
    /// If the hour is given, each time of day comes once a day: one that the clocks leave out in spring comes as much later as they
    /// are put forward, and of two in autumn the first one counts. If the hour starts with `*`, hours are counted as they pass.
    #[must_use]
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        if self.is_hourly { self.next_as_time_passes(after, zone) } else { self.next_by_the_clock(after, zone) }
    }

    fn next_by_the_clock(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut civil = civil_times::search_start(after, zone)?;
        loop {
            civil = self.next_civil(civil)?;
            let time = zone.to_ambiguous_timestamp(civil).compatible().ok()?;
            if time > after {
                return Some(time);
            }
        }
    }

    fn next_as_time_passes(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut after = after;
        loop {
            let offset = zone.to_offset(after);
            let candidate = offset.to_timestamp(self.next_civil(offset.to_datetime(after))?).ok()?;
            // The offset holds until the next transition; the minute before it is where the search starts behind it.
            let Some(change) = zone.following(after).next().filter(|change| change.timestamp() <= candidate) else {
                return Some(candidate);
            };
            let (at, offset) = (change.timestamp(), change.offset());
            if let Some(time) = self.at_or_after(at, offset, zone) {
                return Some(time);
            }
            after = at;
        }
    }

    /// Returns the first time at or after a transition, if it comes before the next one.
    fn at_or_after(&self, change: Timestamp, offset: Offset, zone: &TimeZone) -> Option<Timestamp> {
        let civil = offset.to_datetime(change).checked_sub(1.nanosecond()).ok()?;
        let candidate = offset.to_timestamp(self.next_civil(civil)?).ok()?;
        (zone.to_offset(candidate) == offset).then_some(candidate)
    }

    /// Returns the first time of day after this one, on whatever day.
    fn next_civil(&self, after: DateTime) -> Option<DateTime> {
        // The parser looks four years ahead, and around 2100 eight years have no 29 February.
        [0, 3, 6].into_iter().find_map(|years: i64| {
            let after = Offset::UTC.to_timestamp(after.checked_add(years.years()).ok()?).ok()?;
            let next = self.crontab.find_next(MakeTimestamp(after)).ok()?;
            Some(Offset::UTC.to_datetime(next.timestamp()))
        })
    }
}

/// Returns the fields with their places.
fn field_places(text: &str) -> Vec<(usize, &str)> {
    let place = |field: &str| field.as_ptr() as usize - text.as_ptr() as usize;
    text.split_ascii_whitespace().map(|field| (place(field), field)).collect()
}

/// Reads the offset and the reason out of the message of the parser: a caret below the expression, and the reason behind it.
fn place_and_reason(message: &str) -> (usize, String) {
    let last = message.lines().last().unwrap_or_default();
    match last.split_once("^ ") {
        Some((before, "malformed expression")) => (before.len(), "not a number, name, list, range or step".to_owned()),
        Some((before, reason)) if before.trim().is_empty() => (before.len(), reason.replace("..=", " to ")),
        _ => (0, last.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(expression: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let (cron, zone) = (CronExpression::parse(expression).unwrap(), TimeZone::get(zone).unwrap());
        let mut after: Timestamp = after.parse().unwrap();
        let mut times = Vec::new();
        for _ in 0..count {
            after = cron.next_after(after, &zone).unwrap();
            times.push(after.to_zoned(zone.clone()).strftime("%m-%d %H:%M %z").to_string());
        }
        times
    }

    #[test]
    fn weekdays_are_found() {
        let found = times("0 7 * * mon-fri", "Europe/Berlin", "2026-11-27T07:00:00Z", 3);
        assert_eq!(found, ["11-30 07:00 +0100", "12-01 07:00 +0100", "12-02 07:00 +0100"]);
    }

    #[test]
    fn a_time_that_spring_leaves_out_comes_an_hour_later() {
        let found = times("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3);
        assert_eq!(found, ["03-28 02:30 +0100", "03-29 03:30 +0200", "03-30 02:30 +0200"]);
        // Two times that become one run once.
        let found = times("30 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2);
        assert_eq!(found, ["03-29 03:30 +0200", "03-30 02:30 +0200"]);
    }

    #[test]
    fn a_time_that_autumn_has_twice_comes_once() {
        let found = times("30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00Z", 3);
        assert_eq!(found, ["10-24 02:30 +0200", "10-25 02:30 +0200", "10-26 02:30 +0100"]);
        let found = times("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1);
        assert_eq!(found, ["10-26 02:30 +0100"], "not in the second 02:30");
        let found = times("0 2-3 * * *", "Europe/Berlin", "2026-10-24T22:00:00Z", 3);
        assert_eq!(found, ["10-25 02:00 +0200", "10-25 03:00 +0100", "10-26 02:00 +0100"]);
    }

    #[test]
    fn hours_with_a_star_pass_on_both_days() {
        let found = times("0 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", 3);
        assert_eq!(found, ["03-29 03:00 +0200", "03-29 04:00 +0200", "03-29 05:00 +0200"]);
        let found = times("30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 3);
        assert_eq!(found, ["10-25 02:30 +0200", "10-25 02:30 +0100", "10-25 03:30 +0100"]);
        let found = times("*/20 * * * *", "Australia/Lord_Howe", "2026-04-04T14:35:00Z", 4);
        assert_eq!(found, ["04-05 01:40 +1100", "04-05 01:40 +1030", "04-05 02:00 +1030", "04-05 02:20 +1030"]);
    }

    #[test]
    fn a_day_that_a_zone_leaves_out_is_made_up_for() {
        // Samoa had no 30 December 2011.
        let found = times("0 12 * * *", "Pacific/Apia", "2011-12-29T20:00:00Z", 3);
        assert_eq!(found, ["12-29 12:00 -1000", "12-31 12:00 +1400", "01-01 12:00 +1400"]);
    }

    #[test]
    fn times_grow_whatever_the_zone() {
        for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"] {
            for expression in ["*/7 * * * *", "15 2 * * *", "*/30 0-4 * * *", "0 0 29 2 *", "59 23 L * *", "0 1 * * 7"]
            {
                let (cron, zone) = (CronExpression::parse(expression).unwrap(), TimeZone::get(zone).unwrap());
                let mut last: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
                for _ in 0..120 {
                    let next = cron.next_after(last, &zone).unwrap();
                    assert!(next > last, "{expression} {zone:?} {last}");
                    last = next;
                }
            }
        }
    }

    #[test]
    fn leap_days_come_also_around_2100() {
        let (cron, after) = (CronExpression::parse("0 0 29 2 *").unwrap(), "2096-03-01T00:00:00Z".parse().unwrap());
        assert_eq!(cron.next_after(after, &TimeZone::UTC).unwrap(), "2104-02-29T00:00:00Z".parse().unwrap());
    }

    #[test]
    fn names_are_expressions() {
        assert_eq!(times("@daily", "UTC", "2026-01-01T00:00:00Z", 1), ["01-02 00:00 +0000"]);
        assert_eq!(times("@weekly", "UTC", "2026-01-01T00:00:00Z", 1), ["01-04 00:00 +0000"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let problem = |text: &str| CronExpression::parse(text).unwrap_err().to_string();
        assert_eq!(problem("0 25 * * *"), "character 3: value must be in range 0 to 23; found 25");
        assert_eq!(problem(" 0 7 * * mon-fry"), "character 13: not a number, name, list, range or step");
        assert_eq!(problem("0 7 * *"), "character 8: five fields are needed: the day of the week is missing");
        assert_eq!(problem(""), "character 1: five fields are needed: the minute is missing");
        let seconds = "character 1: six fields; seconds are not taken, so leave out the first field";
        assert_eq!([problem("0 0 7 * * mon-fri"), problem("*/5 * * * * *")], [seconds, seconds]);
        assert!(problem("0 7 * * * UTC").starts_with("character 11: more than five fields"));
        assert_eq!(problem("0 7 30 2 *"), "character 5: no year has such a day");
        assert!(problem("@often").starts_with("character 1: unknown name"));
        assert!(problem("0 7 * * m\u{f6}n").starts_with("character 10: not a character"));
    }
}
