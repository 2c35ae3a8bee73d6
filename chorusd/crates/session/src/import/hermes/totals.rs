//! The usage of a session, which is recorded only as a whole.

use jiff::Timestamp;

use crate::import::imported_call::{ImportedCall, call_key};
use crate::import::json_values::parse_timestamp;
use crate::import::sink::ImportedMetadata;

/// The totals of a session. The input is without what was read from the cache or written to it.
#[derive(Debug, Default)]
pub(super) struct SessionTotals {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    calls: Option<u64>,
    estimated_cost: Option<f64>,
    actual_cost: Option<f64>,
    ended_at: Option<Timestamp>,
}

impl SessionTotals {
    /// Takes over a column, if it is one of the usage.
    pub(super) fn set(&mut self, key: &str, value: &str) {
        let count = || value.parse().unwrap_or(0);
        match key {
            "input_tokens" => self.input = count(),
            "output_tokens" => self.output = count(),
            "cache_read_tokens" => self.cache_read = count(),
            "cache_write_tokens" => self.cache_write = count(),
            "api_call_count" => self.calls = value.parse().ok(),
            "estimated_cost_usd" => self.estimated_cost = value.parse().ok(),
            "actual_cost_usd" => self.actual_cost = value.parse().ok(),
            "ended_at" => self.ended_at = serde_json::from_str(value).ok().and_then(parse_timestamp),
            _ => {}
        }
    }

    /// Returns the calls of the session as one, at its end. `None` if it used nothing.
    pub(super) fn into_call(self, about: &ImportedMetadata, now: Timestamp) -> Option<ImportedCall> {
        let input = self.input.saturating_add(self.cache_read).saturating_add(self.cache_write);
        (input > 0 || self.output > 0).then(|| ImportedCall {
            key: call_key(&[b"hermes", about.conversation.as_deref().unwrap_or_default().as_bytes()]),
            at: self.ended_at.or(about.started_at).unwrap_or(now),
            input_tokens: input,
            output_tokens: self.output,
            cache_read_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            cost_usd: self.actual_cost.or(self.estimated_cost).filter(|cost| cost.is_finite() && *cost > 0.0),
            calls: self.calls.unwrap_or(1),
            ..ImportedCall::default()
        })
    }
}
