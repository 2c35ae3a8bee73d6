//! The requests to the model that `ui_messages` records: when they were made, and what they used.

use chorus_proto::Usage;
use jiff::Timestamp;

use crate::import::raw_object::RawObject;

/// A request.
#[derive(Debug)]
struct Request {
    at: Timestamp,
    /// The number of the last message that the transcript had, from 0; -1 if it had none.
    after: Option<i64>,
    usage: Usage,
    /// Tokens that were written to the cache.
    cache_write: u64,
}

/// All requests of a task in order.
#[derive(Debug, Default)]
pub(super) struct Requests {
    requests: Vec<Request>,
    /// The time of the last line that was shown while the transcript ended with a message.
    shown: Vec<(i64, Timestamp)>,
}

impl Requests {
    /// Adds what was shown at a time. `request` is the description of a request, if it is one.
    pub(super) fn add(&mut self, at: Timestamp, after: Option<i64>, request: Option<&RawObject<'_>>) {
        if let Some(request) = request {
            self.requests.push(Request {
                at,
                after,
                usage: parse_usage(request),
                cache_write: request.get_u64("cacheWrites").unwrap_or(0),
            });
        } else if let Some(after) = after {
            match self.shown.last_mut() {
                Some((last, time)) if *last == after => *time = at,
                _ => self.shown.push((after, at)),
            }
        }
    }

    /// Returns the request that the reply with this number answers. `at` is the time of the reply, if the transcript has it.
    fn of_reply(&self, number: i64, at: Option<Timestamp>) -> Option<&Request> {
        let numbered = self.requests.iter().rfind(|request| request.after == Some(number - 2));
        numbered.or_else(|| self.requests.iter().rfind(|request| request.after.is_none() && Some(request.at) <= at))
    }

    /// Returns the usage of the request that a reply answers, with the tokens that were written to the cache.
    pub(super) fn usage_of(&self, number: i64, at: Option<Timestamp>) -> Option<(Usage, u64)> {
        self.of_reply(number, at).map(|request| (request.usage.clone(), request.cache_write))
    }

    /// Returns the time of a message to which the transcript gives none.
    pub(super) fn time_of(&self, number: i64, is_reply: bool) -> Option<Timestamp> {
        if is_reply {
            let shown = self.shown.iter().rfind(|(after, _)| *after == number - 1).map(|(_, at)| *at);
            return shown.or_else(|| self.of_reply(number, None).map(|request| request.at));
        }
        self.requests.iter().rfind(|request| request.after == Some(number - 1)).map(|request| request.at)
    }
}

/// Parses token counts. The input is without what was cached.
fn parse_usage(request: &RawObject<'_>) -> Usage {
    let counts = ["tokensIn", "cacheReads", "cacheWrites"].map(|name| request.get_u64(name).unwrap_or(0));
    let input = counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
    Usage {
        input_tokens: Some(input).filter(|input| *input > 0),
        output_tokens: request.get_u64("tokensOut"),
        cache_read_tokens: request.get_u64("cacheReads"),
        cost_usd: request.get_parsed("cost").filter(|cost| *cost > 0.0),
        ..Usage::default()
    }
}
