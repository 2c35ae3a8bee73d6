//! The usage of model calls that a transcript records.

use std::sync::Arc;

use chorus_proto::{Message, Usage};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

/// How much of a message's text identifies its call, in bytes.
const MAX_KEY_TEXT: usize = 256;

/// A model call that another program made, or several whose usage is known only together.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedCall {
    /// Identifies the call in all transcripts that contain it: a fork repeats the calls of its parent.
    pub key: u64,
    pub at: Timestamp,
    /// The model as the program names it, with its provider if that is known. `None`: the model of the conversation.
    pub model: Option<Arc<str>>,
    /// Tokens of the whole input, including those that were read from the cache or written to it.
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    /// The cost that the program recorded, in US dollars.
    pub cost_usd: Option<f64>,
    /// The program recorded fewer output tokens than the call had.
    pub is_lower_bound: bool,
    /// Number of calls.
    pub calls: u64,
}

impl Default for ImportedCall {
    fn default() -> Self {
        Self {
            key: 0,
            at: Timestamp::default(),
            model: None,
            input_tokens: 0,
            output_tokens: 0,
            cache_read_tokens: 0,
            cache_write_tokens: 0,
            cost_usd: None,
            is_lower_bound: false,
            calls: 1,
        }
    }
}

impl ImportedCall {
    /// Returns the call that made a message, or `None` if the message does not say what it used. `now` is the time of
    /// messages to which the source gives none.
    #[must_use]
    pub fn from_message(message: &Message, now: Timestamp) -> Option<Self> {
        let usage = message.usage.as_ref()?;
        let time = if message.timestamp == now { 0 } else { message.timestamp.as_nanosecond() };
        let text = &message.content.as_bytes()[..message.content.len().min(MAX_KEY_TEXT)];
        let counts = [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens].map(Option::unwrap_or_default);
        let key = call_key(&[&time.to_le_bytes(), &counts.map(u64::to_le_bytes).concat(), text]);
        Self { key, at: message.timestamp, ..Self::default() }.with_usage(usage)
    }

    /// Returns the call with these token counts, or `None` if it used nothing.
    #[must_use]
    pub fn with_usage(self, usage: &Usage) -> Option<Self> {
        let count = Option::<u64>::unwrap_or_default;
        let (input, cached) = (count(usage.input_tokens), count(usage.cache_read_tokens));
        let call = Self {
            // Some programs leave the cached tokens out of the input.
            input_tokens: if cached > input { input.saturating_add(cached) } else { input },
            output_tokens: count(usage.output_tokens),
            cache_read_tokens: cached,
            cost_usd: usage.cost_usd.filter(|cost| cost.is_finite() && *cost > 0.0),
            ..self
        };
        (call.input_tokens > 0 || call.output_tokens > 0 || call.cost_usd.is_some()).then_some(call)
    }
}

/// Returns the key of the call that these parts identify. Equal in all runs and on all machines.
pub(super) fn call_key(parts: &[&[u8]]) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hash.finalize()[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use chorus_proto::{NewMessage, Role};

    use super::*;

    fn message(at: &str, text: &str, usage: Option<Usage>) -> Message {
        let message = NewMessage { usage, ..NewMessage::text(Role::Assistant, text) };
        message.complete(|| "m".into(), at.parse().unwrap())
    }

    #[test]
    fn a_message_with_token_counts_is_a_call_and_its_key_is_the_same_in_every_copy() {
        let now = "2030-01-01T00:00:00Z".parse().unwrap();
        let usage = Usage { input_tokens: Some(7), output_tokens: Some(2), cost_usd: Some(0.5), ..Usage::default() };
        let call = |at, text, usage| ImportedCall::from_message(&message(at, text, usage), now);
        let first = call("2026-01-01T10:00:00Z", "hello", Some(usage.clone())).unwrap();
        assert_eq!((first.input_tokens, first.output_tokens, first.cost_usd), (7, 2, Some(0.5)));
        assert_eq!(call("2026-01-01T10:00:00Z", "hello", Some(usage.clone())).unwrap().key, first.key);
        for (at, text) in [("2026-01-01T10:00:01Z", "hello"), ("2026-01-01T10:00:00Z", "hallo")] {
            assert_ne!(call(at, text, Some(usage.clone())).unwrap().key, first.key, "{at} {text}");
        }
        assert_eq!(call("2026-01-01T10:00:00Z", "hello", None), None);
        assert_eq!(call("2026-01-01T10:00:00Z", "hello", Some(Usage::default())), None);
        let free = Usage { input_tokens: Some(0), cost_usd: Some(-1.0), ..Usage::default() };
        assert_eq!(call("2026-01-01T10:00:00Z", "hello", Some(free)), None);
    }
}
