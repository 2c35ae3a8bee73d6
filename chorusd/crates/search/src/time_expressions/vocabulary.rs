//! Words that expressions of time consist of.

use jiff::civil::{Date, Weekday};
use tantivy::tokenizer::TextAnalyzer;

use crate::analysis;

/// The years that a number of four digits may be.
const YEARS: std::ops::RangeInclusive<i64> = 1970..=2100;

/// A word of a question, as far as it concerns time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// A number in digits.
    Number(i64),
    /// A number in words, "a" and "few" among them.
    Quantity(i64),
    /// "3rd"
    Ordinal(i8),
    Year(i16),
    /// "2026-05-03"
    Date(Date),
    /// "2026-05"
    YearAndMonth(i16, i8),
    Month(i8),
    /// A short name of a month, or one that is the verb "may" more often.
    DoubtfulMonth(i8),
    Weekday(Weekday),
    Unit(Unit),
    PartOfDay(PartOfDay),
    Weekend,
    Today,
    Tonight,
    Yesterday,
    /// "vorgestern"
    DayBeforeYesterday,
    Recently,
    Last,
    This,
    /// "past", as in "the past week"
    Past,
    Ago,
    /// "vor", as in "vor zwei Wochen"
    BackBy,
    Before,
    /// A preposition before a month or year.
    In,
    /// "the", "of", "on", which change nothing.
    Filler,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartOfDay {
    Morning,
    Afternoon,
    Evening,
    Night,
}

/// Adds the words of a part of a query that has no spaces.
pub(super) fn classify(analyzer: &mut TextAnalyzer, part: &str, words: &mut Vec<Word>) {
    let trimmed = part.trim_matches(|c: char| !c.is_alphanumeric());
    if trimmed.len() == 10
        && let Ok(date) = trimmed.parse::<Date>()
    {
        words.push(Word::Date(date));
    } else if let Some((year, month)) = year_and_month(trimmed) {
        words.push(Word::YearAndMonth(year, month));
    } else {
        let tokens = analysis::words(analyzer, part);
        words.extend(tokens.iter().map(|token| word(&token.text)));
    }
}

/// Parses `2026-05`.
fn year_and_month(text: &str) -> Option<(i16, i8)> {
    let (year, month) = text.split_once('-').filter(|(year, month)| year.len() == 4 && month.len() == 2)?;
    let (year, month) = (year.parse::<i16>().ok()?, month.parse::<i8>().ok()?);
    (YEARS.contains(&i64::from(year)) && (1..=12).contains(&month)).then_some((year, month))
}

/// Classifies a word that is folded and in lower case.
fn word(text: &str) -> Word {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return number(text);
    }
    match text {
        "january" | "januar" | "janner" => Word::Month(1),
        "february" | "februar" => Word::Month(2),
        "march" | "marz" => Word::Month(3),
        "april" => Word::Month(4),
        "mai" => Word::Month(5),
        "june" | "juni" => Word::Month(6),
        "july" | "juli" => Word::Month(7),
        "august" => Word::Month(8),
        "september" => Word::Month(9),
        "october" | "oktober" => Word::Month(10),
        "november" => Word::Month(11),
        "december" | "dezember" => Word::Month(12),
        "may" => Word::DoubtfulMonth(5),
        "jan" => Word::DoubtfulMonth(1),
        "feb" => Word::DoubtfulMonth(2),
        "mar" => Word::DoubtfulMonth(3),
        "apr" => Word::DoubtfulMonth(4),
        "jun" => Word::DoubtfulMonth(6),
        "jul" => Word::DoubtfulMonth(7),
        "aug" => Word::DoubtfulMonth(8),
        "sep" | "sept" => Word::DoubtfulMonth(9),
        "oct" | "okt" => Word::DoubtfulMonth(10),
        "nov" => Word::DoubtfulMonth(11),
        "dec" | "dez" => Word::DoubtfulMonth(12),
        "monday" | "montag" => Word::Weekday(Weekday::Monday),
        "tuesday" | "dienstag" => Word::Weekday(Weekday::Tuesday),
        "wednesday" | "mittwoch" => Word::Weekday(Weekday::Wednesday),
        "thursday" | "donnerstag" => Word::Weekday(Weekday::Thursday),
        "friday" | "freitag" => Word::Weekday(Weekday::Friday),
        "saturday" | "samstag" | "sonnabend" => Word::Weekday(Weekday::Saturday),
        "sunday" | "sonntag" => Word::Weekday(Weekday::Sunday),
        "minute" | "minutes" | "minuten" => Word::Unit(Unit::Minute),
        "hour" | "hours" | "stunde" | "stunden" => Word::Unit(Unit::Hour),
        "day" | "days" | "tag" | "tage" | "tagen" => Word::Unit(Unit::Day),
        "week" | "weeks" | "woche" | "wochen" => Word::Unit(Unit::Week),
        "month" | "months" | "monat" | "monate" | "monaten" => Word::Unit(Unit::Month),
        "year" | "years" | "jahr" | "jahre" | "jahren" => Word::Unit(Unit::Year),
        "morning" | "morgen" | "vormittag" => Word::PartOfDay(PartOfDay::Morning),
        "afternoon" | "nachmittag" => Word::PartOfDay(PartOfDay::Afternoon),
        "evening" | "abend" => Word::PartOfDay(PartOfDay::Evening),
        "night" | "nacht" => Word::PartOfDay(PartOfDay::Night),
        "weekend" | "wochenende" => Word::Weekend,
        "today" | "heute" => Word::Today,
        "tonight" => Word::Tonight,
        "yesterday" | "gestern" => Word::Yesterday,
        "vorgestern" => Word::DayBeforeYesterday,
        "recently" | "lately" | "neulich" | "kurzlich" => Word::Recently,
        "last" | "previous" | "letzte" | "letzten" | "letzter" | "letztes" | "letztem" | "vorige" | "vorigen"
        | "voriges" => Word::Last,
        "this" | "diese" | "diesen" | "dieser" | "dieses" | "diesem" => Word::This,
        "past" | "vergangene" | "vergangenen" => Word::Past,
        "ago" => Word::Ago,
        "vor" => Word::BackBy,
        "before" => Word::Before,
        "in" | "during" | "since" | "until" | "im" | "seit" => Word::In,
        "the" | "of" | "on" | "am" | "der" | "den" | "dem" => Word::Filler,
        "a" | "an" | "one" | "ein" | "einem" | "einer" => Word::Quantity(1),
        "two" | "couple" | "zwei" => Word::Quantity(2),
        "three" | "few" | "several" | "drei" | "paar" | "einigen" | "wenigen" => Word::Quantity(3),
        "four" | "vier" => Word::Quantity(4),
        "five" | "funf" => Word::Quantity(5),
        "six" | "sechs" => Word::Quantity(6),
        "seven" | "sieben" => Word::Quantity(7),
        "eight" | "acht" => Word::Quantity(8),
        "nine" | "neun" => Word::Quantity(9),
        "ten" | "zehn" => Word::Quantity(10),
        "eleven" | "elf" => Word::Quantity(11),
        "twelve" | "zwolf" => Word::Quantity(12),
        _ => Word::Other,
    }
}

fn number(text: &str) -> Word {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, ending) = text.split_at(end);
    match (digits.parse::<i64>(), ending) {
        (Ok(year), "") if digits.len() == 4 && YEARS.contains(&year) => {
            i16::try_from(year).map_or(Word::Other, Word::Year)
        }
        (Ok(number), "") if digits.len() <= 3 => Word::Number(number),
        (Ok(day), "st" | "nd" | "rd" | "th") => {
            i8::try_from(day).ok().filter(|day| (1..=31).contains(day)).map_or(Word::Other, Word::Ordinal)
        }
        _ => Word::Other,
    }
}
