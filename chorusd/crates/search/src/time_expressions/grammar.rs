//! The expressions of time that are understood.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::{Span, ToSpan as _};

use super::vocabulary::{PartOfDay, Unit, Word};

/// Days that "recently" reaches back.
const RECENT_DAYS: i32 = 14;

/// An expression of time, relative to when it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expression {
    /// So many days ago, or a part of that day.
    DaysAgo(i32, Option<PartOfDay>),
    /// "two weeks ago": about then.
    Ago(i64, Unit),
    /// "the last three days": from then until now.
    Since(i64, Unit),
    /// "last month" (1) or "this month" (0), by the calendar.
    Calendar(i64, Unit),
    /// The last such day. `true` if it cannot be today.
    Weekday(Weekday, bool),
    /// The last weekend. `true` if it cannot be the one that has begun.
    Weekend(bool),
    Date(Date),
    /// Day and month, the last time that it was.
    DayOfMonth(i8, i8),
    MonthOfYear(i16, i8),
    /// The last such month. `true` if it cannot be the present one.
    Month(i8, bool),
    Year(i16),
}

/// Parses the expression that the words begin with, and returns how many words it has.
pub(super) fn parse(words: &[Word]) -> Option<(Expression, usize)> {
    // The longest first.
    date(words).or_else(|| day(words)).or_else(|| quantity(words)).or_else(|| calendar(words))
}

/// Dates, months and years.
fn date(words: &[Word]) -> Option<(Expression, usize)> {
    let (without_filler, fillers) = skip_fillers(words);
    let found = match without_filler {
        [Word::Date(date), ..] => (Expression::Date(*date), 1),
        [Word::YearAndMonth(year, month), ..] => (Expression::MonthOfYear(*year, *month), 1),
        // "Monday, 4 May"
        [Word::Weekday(_), rest @ ..] => {
            let (expression, length) = date(rest)?;
            (expression, length + 1)
        }
        [day, rest @ ..] if day_of(*day).is_some() => {
            let (rest, between) = skip_fillers(rest);
            let (day, length) = (day_of(*day)?, between + 2);
            match rest {
                [month, Word::Year(year), ..] => (full_date(*year, month_of(*month)?, day)?, length + 1),
                [month, ..] => (Expression::DayOfMonth(month_of(*month)?, day), length),
                [] => return None,
            }
        }
        [month, rest @ ..] if month_of(*month).is_some() => {
            let month = month_of(*month)?;
            match rest {
                [Word::Year(year), ..] => (Expression::MonthOfYear(*year, month), 2),
                [day, Word::Year(year), ..] => (full_date(*year, month, day_of(*day)?)?, 3),
                [day, ..] => (Expression::DayOfMonth(month, day_of(*day)?), 2),
                [] => return None,
            }
        }
        _ => return None,
    };
    Some((found.0, found.1 + fillers))
}

/// Days that have names: yesterday, Monday, this morning.
fn day(words: &[Word]) -> Option<(Expression, usize)> {
    use Expression::{DaysAgo, Weekday, Weekend};
    Some(match words {
        [Word::Unit(Unit::Day), Word::Before, Word::Yesterday, ..] => (DaysAgo(2, None), 3),
        [Word::DayBeforeYesterday, Word::PartOfDay(part), ..] => (DaysAgo(2, Some(*part)), 2),
        [Word::DayBeforeYesterday, ..] => (DaysAgo(2, None), 1),
        [Word::Yesterday, Word::PartOfDay(part), ..] => (DaysAgo(1, Some(*part)), 2),
        [Word::Yesterday, ..] => (DaysAgo(1, None), 1),
        [Word::Last, Word::PartOfDay(PartOfDay::Night), ..] => (DaysAgo(1, Some(PartOfDay::Night)), 2),
        [Word::Today | Word::This, Word::PartOfDay(part), ..] => (DaysAgo(0, Some(*part)), 2),
        [Word::Tonight, ..] => (DaysAgo(0, Some(PartOfDay::Evening)), 1),
        [Word::Today, ..] => (DaysAgo(0, None), 1),
        [Word::Last, Word::Weekday(day), ..] => (Weekday(*day, true), 2),
        [Word::Weekday(day), ..] => (Weekday(*day, false), 1),
        [Word::Last, Word::Weekend, ..] => (Weekend(true), 2),
        [Word::Weekend, ..] => (Weekend(false), 1),
        [Word::Recently, ..] => (Expression::Since(i64::from(RECENT_DAYS), Unit::Day), 1),
        _ => return None,
    })
}

/// Numbers of days, weeks and so on.
fn quantity(words: &[Word]) -> Option<(Expression, usize)> {
    use Expression::{Ago, DaysAgo, Since};
    let (is_back_by, is_last, rest) = match words {
        [Word::BackBy, rest @ ..] => (true, false, rest),
        [Word::Last | Word::Past, rest @ ..] => (false, true, rest),
        _ => (false, false, words),
    };
    let before_number = words.len() - rest.len();
    let (number, unit, length) = match rest {
        // "a few", "a couple of"
        [Word::Quantity(1), Word::Quantity(number), rest @ ..] => {
            let (rest, fillers) = skip_fillers(rest);
            let [Word::Unit(unit), ..] = rest else { return None };
            (*number, *unit, 3 + fillers)
        }
        [Word::Number(number) | Word::Quantity(number), Word::Unit(unit), ..] => (*number, *unit, 2),
        // "the past week", but "last week" is that of the calendar.
        [Word::Unit(unit), ..] if words.first() == Some(&Word::Past) => (1, *unit, 1),
        _ => return None,
    };
    let behind = before_number + length;
    let is_ago = words.get(behind) == Some(&Word::Ago);
    Some(match unit {
        _ if is_last => (Since(number, unit), behind),
        Unit::Day if is_ago || is_back_by => (DaysAgo(i32::try_from(number).ok()?, None), behind + usize::from(is_ago)),
        _ if is_ago || is_back_by => (Ago(number, unit), behind + usize::from(is_ago)),
        _ => return None,
    })
}

/// "last month", "in May", "in 2025"
fn calendar(words: &[Word]) -> Option<(Expression, usize)> {
    use Expression::{Calendar, Month, MonthOfYear, Since, Year};
    let is_last = |word: &Word| *word == Word::Last;
    Some(match words {
        [Word::Last, Word::Unit(unit @ (Unit::Minute | Unit::Hour | Unit::Day)), ..] => (Since(1, *unit), 2),
        [Word::Last, Word::Unit(unit), ..] => (Calendar(1, *unit), 2),
        [Word::This, Word::Unit(unit @ (Unit::Week | Unit::Month | Unit::Year)), ..] => (Calendar(0, *unit), 2),
        // "im Jahr 2025"
        [Word::In, Word::Unit(Unit::Year), Word::Year(year), ..] => (Year(*year), 3),
        [Word::In, Word::Year(year), ..] => (Year(*year), 2),
        [Word::In | Word::Last | Word::This, month, rest @ ..] if month_of(*month).is_some() => {
            match (month_of(*month)?, rest) {
                (month, [Word::Year(year), ..]) => (MonthOfYear(*year, month), 3),
                (month, _) => (Month(month, words.first().is_some_and(is_last)), 2),
            }
        }
        _ => return None,
    })
}

fn skip_fillers(words: &[Word]) -> (&[Word], usize) {
    let fillers = words.iter().take_while(|word| **word == Word::Filler).count();
    (&words[fillers..], fillers)
}

fn day_of(word: Word) -> Option<i8> {
    match word {
        Word::Number(day) if (1..=31).contains(&day) => i8::try_from(day).ok(),
        Word::Ordinal(day) => Some(day),
        _ => None,
    }
}

fn month_of(word: Word) -> Option<i8> {
    match word {
        Word::Month(month) | Word::DoubtfulMonth(month) => Some(month),
        _ => None,
    }
}

fn full_date(year: i16, month: i8, day: i8) -> Option<Expression> {
    Date::new(year, month, day).ok().map(Expression::Date)
}

impl Expression {
    /// Returns start and end of what it means at `now`; `None` if the calendar has no such time.
    pub(super) fn resolve(self, now: DateTime) -> Option<(DateTime, DateTime)> {
        let today = now.date();
        match self {
            Self::DaysAgo(days, part) => {
                let day = today.checked_sub(days.days()).ok()?;
                match part {
                    Some(part) => part.resolve(day),
                    None => days_from(day, 1),
                }
            }
            Self::Ago(number, unit) => {
                let then = before(now, unit.span(number)?)?;
                let half = unit.half();
                Some((before(then, half)?, then.checked_add(half).ok()?))
            }
            Self::Since(number, unit) => Some((before(now, unit.span(number)?)?, now.checked_add(1.minute()).ok()?)),
            Self::Calendar(ago, unit) => {
                let start = match unit {
                    Unit::Minute | Unit::Hour | Unit::Day => today,
                    Unit::Week => today.checked_sub(i32::from(today.weekday().to_monday_zero_offset()).days()).ok()?,
                    Unit::Month => today.first_of_month(),
                    Unit::Year => today.first_of_year(),
                };
                let start = before(start.to_datetime(Time::midnight()), unit.span(ago)?)?;
                Some((start, start.checked_add(unit.span(1)?).ok()?))
            }
            Self::Weekday(day, is_before_today) => {
                let today = if is_before_today { today.yesterday().ok()? } else { today };
                days_from(last_weekday(today, day)?, 1)
            }
            Self::Weekend(is_before_this) => {
                let is_weekend = matches!(today.weekday(), Weekday::Saturday | Weekday::Sunday);
                let saturday = last_weekday(today, Weekday::Saturday)?;
                let weeks = i32::from(is_weekend && is_before_this);
                days_from(saturday.checked_sub(weeks.weeks()).ok()?, 2)
            }
            Self::Date(date) => days_from(date, 1),
            Self::DayOfMonth(month, day) => {
                // A 29 February may be up to eight years ago.
                let mut years = (0..=8).filter_map(|ago| Date::new(today.year() - ago, month, day).ok());
                days_from(years.find(|date| *date <= today)?, 1)
            }
            Self::MonthOfYear(year, month) => month_from(Date::new(year, month, 1).ok()?),
            Self::Month(month, is_before_this) => {
                let first = Date::new(today.year(), month, 1).ok()?;
                let is_past = first <= today && !(is_before_this && month == today.month());
                month_from(if is_past { first } else { Date::new(today.year() - 1, month, 1).ok()? })
            }
            Self::Year(year) => {
                let (first, next) = (Date::new(year, 1, 1).ok()?, Date::new(year + 1, 1, 1).ok()?);
                Some((first.to_datetime(Time::midnight()), next.to_datetime(Time::midnight())))
            }
        }
    }
}

impl Unit {
    /// Returns a span of so many units; `None` if it is longer than any calendar.
    fn span(self, number: i64) -> Option<Span> {
        let span = Span::new();
        match self {
            Self::Minute => span.try_minutes(number),
            Self::Hour => span.try_hours(number),
            Self::Day => span.try_days(number),
            Self::Week => span.try_weeks(number),
            Self::Month => span.try_months(number),
            Self::Year => span.try_years(number),
        }
        .ok()
    }

    /// Returns how far "three units ago" may be from three units ago.
    fn half(self) -> Span {
        match self {
            Self::Minute => 1.minute(),
            Self::Hour => 30.minutes(),
            Self::Day => 12.hours(),
            Self::Week => 84.hours(),
            Self::Month => 15.days(),
            Self::Year => 6.months(),
        }
    }
}

impl PartOfDay {
    fn resolve(self, day: Date) -> Option<(DateTime, DateTime)> {
        let (from, hours) = match self {
            Self::Morning => (5, 7),
            Self::Afternoon => (12, 6),
            Self::Evening => (17, 7),
            // Into the next morning.
            Self::Night => (18, 12),
        };
        let start = day.at(from, 0, 0, 0);
        Some((start, start.checked_add(hours.hours()).ok()?))
    }
}

fn days_from(date: Date, days: i32) -> Option<(DateTime, DateTime)> {
    let end = date.checked_add(days.days()).ok()?;
    Some((date.to_datetime(Time::midnight()), end.to_datetime(Time::midnight())))
}

fn month_from(first: Date) -> Option<(DateTime, DateTime)> {
    let next = first.checked_add(1.month()).ok()?;
    Some((first.to_datetime(Time::midnight()), next.to_datetime(Time::midnight())))
}

/// Returns the last such day, which may be `today`.
fn last_weekday(today: Date, weekday: Weekday) -> Option<Date> {
    let ago = weekday.until(today.weekday());
    today.checked_sub(i32::from(ago).days()).ok()
}

/// Returns the time that lies `span` before another.
fn before(at: DateTime, span: Span) -> Option<DateTime> {
    at.checked_sub(span).ok()
}
