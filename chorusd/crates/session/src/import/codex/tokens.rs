//! Token counts of model calls. A rollout has them in separate events (`token_count`), for the last call and in total.

use std::borrow::Cow;

use chorus_proto::Usage;
use jiff::Timestamp;

use super::super::imported_call::{ImportedCall, call_key};
use super::super::raw_object::RawObject;

/// The totals so far.
#[derive(Debug, Default)]
pub(super) struct TokenCounter {
    total: Option<TokenCounts>,
    /// The turn, or the conversation if the file does not name turns. A fork copies them, but not the times.
    turn: String,
    /// The calls that were read.
    pub calls: Vec<ImportedCall>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TokenCounts {
    input: u64,
    cached: u64,
    /// Newer versions count this.
    cache_write: u64,
    output: u64,
}

impl TokenCounter {
    /// Notes the turn that the next calls belong to.
    pub(super) fn begin_turn(&mut self, id: Option<Cow<'_, str>>) {
        if let Some(id) = id {
            self.turn = id.into_owned();
        }
    }

    /// Adds the call of an event to [`Self::calls`], and returns its usage as the event tells it. An event whose total is
    /// unchanged repeats an earlier one. Older events have only the total.
    pub(super) fn read_event(&mut self, payload: &RawObject<'_>, at: Timestamp, model: Option<&str>) -> Option<Usage> {
        let info = payload.get("info").and_then(RawObject::from_value)?;
        let counts = |name| info.get(name).and_then(RawObject::from_value).map(|counts| TokenCounts::parse(&counts));
        let (last, total) = (counts("last_token_usage"), counts("total_token_usage"));
        let before = self.total;
        if let Some(total) = total {
            self.total = Some(total);
            if before == Some(total) {
                return None;
            }
        }
        let told = last.or_else(|| total.map(|total| before.map_or(total, |before| total.since(before))))?;
        let key = match total {
            Some(total) => call_key(&[self.turn.as_bytes(), &total.to_bytes()]),
            None => call_key(&[self.turn.as_bytes(), &told.to_bytes(), &at.as_nanosecond().to_le_bytes()]),
        };
        let counted = total.map_or(told, |total| total.counted_since(before, last));
        let call = ImportedCall { key, at, model: model.map(Into::into), ..ImportedCall::default() };
        let call = call.with_usage(&counted.to_usage());
        self.calls.extend(call.map(|call| ImportedCall { cache_write_tokens: counted.cache_write, ..call }));
        Some(told.to_usage())
    }
}

impl TokenCounts {
    fn parse(fields: &RawObject<'_>) -> Self {
        let count = |name| fields.get_u64(name).unwrap_or_default();
        Self {
            input: count("input_tokens"),
            cached: count("cached_input_tokens"),
            cache_write: count("cache_write_input_tokens"),
            output: count("output_tokens"),
        }
    }

    /// Returns what a total adds to the one before it. It starts again when some versions resume a conversation, and a
    /// fork starts with the total of its parent.
    fn counted_since(self, before: Option<Self>, last: Option<Self>) -> Self {
        match before {
            Some(before) if self.is_at_least(before) && last != Some(self) => self.since(before),
            _ => last.unwrap_or(self),
        }
    }

    fn is_at_least(self, before: Self) -> bool {
        self.input >= before.input
            && self.cached >= before.cached
            && self.cache_write >= before.cache_write
            && self.output >= before.output
    }

    fn since(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            cache_write: self.cache_write.saturating_sub(before.cache_write),
            output: self.output.saturating_sub(before.output),
        }
    }

    fn to_usage(self) -> Usage {
        Usage {
            input_tokens: Some(self.input),
            output_tokens: Some(self.output),
            cache_read_tokens: Some(self.cached),
            ..Usage::default()
        }
    }

    fn to_bytes(self) -> Vec<u8> {
        [self.input, self.cached, self.output].map(u64::to_le_bytes).concat()
    }
}

/// Adds `usage` to that of the calls before.
pub(super) fn add_usage(before: Option<Usage>, usage: Usage) -> Usage {
    let Some(before) = before else { return usage };
    let add = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).reduce(u64::saturating_add);
    Usage {
        input_tokens: add(before.input_tokens, usage.input_tokens),
        output_tokens: add(before.output_tokens, usage.output_tokens),
        cache_read_tokens: add(before.cache_read_tokens, usage.cache_read_tokens),
        ..usage
    }
}
