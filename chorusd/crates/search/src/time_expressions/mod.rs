//! Expressions of time in a question, such as "last week" or "in May", and the spans of time that they mean.

mod grammar;
mod vocabulary;

use jiff::{Timestamp, Zoned, civil::DateTime};

use self::grammar::Expression;
use crate::analysis;
use crate::parse;

/// Expressions beyond these are not looked at.
const MAX_EXPRESSIONS: usize = 4;

/// A message that is this share of the length of a span away from it is half as close as one within.
const HALVED_AFTER: f64 = 0.25;

/// The same for short spans, in microseconds: half a day.
const MIN_HALVED_AFTER: f64 = 12.0 * 3600.0 * 1e6;

/// A span of time that a question names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeSpan {
    pub(crate) start: Timestamp,
    /// Not part of it.
    pub(crate) end: Timestamp,
}

impl TimeSpan {
    /// Returns 1 for a time within the span, and less the farther away it is, in microseconds since 1970.
    pub(crate) fn closeness(self, at: i64) -> f32 {
        let (start, end) = (self.start.as_microsecond(), self.end.as_microsecond());
        let distance = match at {
            _ if at < start => start.saturating_sub(at),
            _ if at >= end => at.saturating_sub(end),
            _ => return 1.0,
        };
        let halved_after = (HALVED_AFTER * end.saturating_sub(start) as f64).max(MIN_HALVED_AFTER);
        (-(distance as f64) / halved_after).exp2() as f32
    }
}

/// Finds the expressions of time in the text of a query that is asked at `now`, in English and German. Quoted and excluded
/// words are none.
pub(crate) fn find(text: &str, now: &Zoned) -> Vec<TimeSpan> {
    let mut analyzer = analysis::prefix_analyzer();
    let mut words = Vec::new();
    for part in parse::split(text) {
        if part.is_phrase || part.is_excluded {
            words.push(vocabulary::Word::Other);
        } else {
            vocabulary::classify(&mut analyzer, part.text, &mut words);
        }
    }
    let mut spans: Vec<TimeSpan> = Vec::new();
    let mut rest = &words[..];
    while !rest.is_empty() && spans.len() < MAX_EXPRESSIONS {
        let (found, length) = grammar::parse(rest).map_or((None, 1), |(found, length)| (Some(found), length));
        let span = found.and_then(|found| to_span(found, now)).filter(|span| !spans.contains(span));
        spans.extend(span);
        rest = &rest[length..];
    }
    spans
}

/// Returns the span that an expression means at `now`; `None` if the calendar has no such time.
fn to_span(expression: Expression, now: &Zoned) -> Option<TimeSpan> {
    let (start, end) = expression.resolve(now.datetime())?;
    let timestamp = |at: DateTime| Some(at.to_zoned(now.time_zone().clone()).ok()?.timestamp());
    let (start, end) = (timestamp(start)?, timestamp(end)?);
    (start < end).then_some(TimeSpan { start, end })
}

#[cfg(test)]
mod tests;
