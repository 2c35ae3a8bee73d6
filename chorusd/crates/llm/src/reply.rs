//! The complete result of a model call.

use chorus_config::Price;
use chorus_proto::{ToolCall, Usage};
use serde_json::value::RawValue;

/// A reply of a model.
#[derive(Debug, Clone)]
pub struct Reply {
    pub content: String,
    pub tool_calls: Vec<ToolCall>,
    /// Blocks that must be sent back to this provider unchanged: `{"kind", "provider", "blocks": [...]}`.
    pub provider: Option<Box<RawValue>>,
    /// The input includes the tokens that were read from the provider's cache or written to it.
    pub usage: Usage,
    /// Input tokens that the provider wrote to its cache.
    pub cache_write_tokens: Option<u64>,
    pub stop: StopReason,
}

impl Reply {
    /// The JSON of a reply with an output format: the parameters of the tool call, or else the text.
    #[must_use]
    pub fn structured_output(&self) -> &str {
        self.tool_calls.first().map_or(&*self.content, |call| call.params.get())
    }

    /// Returns the number of bytes that the model wrote: text, tool calls and thinking.
    #[must_use]
    pub fn output_bytes(&self) -> u64 {
        let calls = self.tool_calls.iter().map(|call| call.name.len() + call.params.get().len());
        let thinking = self.provider.as_ref().map_or(0, |blocks| blocks.get().len());
        (self.content.len() + calls.sum::<usize>() + thinking) as u64
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The reply is complete.
    End,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The reply was truncated, by `max_tokens` or the context length. Truncated tool calls are left out.
    MaxTokens,
    Refused,
    Other(String),
}

/// Calculates the cost of a call in US dollars. The input includes the tokens read from the cache and written to it.
#[must_use]
pub fn calculate_cost(price: &Price, usage: &Usage, cache_write_tokens: Option<u64>) -> f64 {
    let (read, written) = (usage.cache_read_tokens.unwrap_or(0), cache_write_tokens.unwrap_or(0));
    let plain = usage.input_tokens.unwrap_or(0).saturating_sub(read).saturating_sub(written);
    let parts = [
        (plain, price.input),
        (read, price.cache_read.unwrap_or(price.input)),
        (written, price.cache_write.unwrap_or(price.input)),
        (usage.output_tokens.unwrap_or(0), price.output),
    ];
    // Token counts are small enough for a float to be exact.
    parts.into_iter().map(|(tokens, price)| tokens as f64 * price / 1e6).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_price() {
        let price = Price { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: Some(3.75) };
        let usage = Usage {
            input_tokens: Some(1_000_000),
            output_tokens: Some(100_000),
            cache_read_tokens: Some(500_000),
            ..Usage::default()
        };
        assert!((calculate_cost(&price, &usage, Some(100_000)) - (1.2 + 0.15 + 0.375 + 1.5)).abs() < 1e-9);
        assert!((calculate_cost(&Price { input: 1.0, ..Price::default() }, &usage, None) - 1.0).abs() < 1e-9);
    }
}
