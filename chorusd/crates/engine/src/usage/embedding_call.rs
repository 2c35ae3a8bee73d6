//! Builds the usage row of a request for vectors.

use std::time::Duration;

use chorus_config::Price;
use chorus_llm::{ModelRef, calculate_cost};
use chorus_proto::Usage;
use chorus_session::token_estimate::tokens_of_text;
use jiff::Timestamp;
use uuid::Uuid;

use super::usage_row::MAX_TOKENS;
use super::{CallKind, UsageRow};

/// A request for the vectors of texts. It is no agent's: the texts may be of several, and a query is the user's.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddingCall<'a> {
    pub target: &'a ModelRef,
    pub texts: &'a [&'a str],
    /// Number of tokens that the server reported.
    pub tokens: Option<u64>,
    /// Price of the model, if known.
    pub price: Option<Price>,
    pub duration: Duration,
}

impl EmbeddingCall<'_> {
    pub(super) fn to_row(self, at: Timestamp) -> UsageRow {
        let tokens = self.tokens.unwrap_or_else(|| self.texts.iter().map(|text| tokens_of_text(text)).sum());
        let input = tokens.min(MAX_TOKENS);
        let usage = Usage { input_tokens: Some(input), ..Usage::default() };
        UsageRow {
            at,
            agent_id: Uuid::nil(),
            agent_name: String::new(),
            context: None,
            conversation_id: None,
            turn_id: None,
            model: self.target.to_string(),
            kind: CallKind::Embedding,
            input,
            estimated: 0,
            output: 0,
            cache_read: 0,
            cache_write: 0,
            by_estimate: self.tokens.is_none(),
            cost_usd: self.price.map(|price| calculate_cost(&price, &usage, None)),
            duration_ms: u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_counts_and_an_estimate_stands_in() {
        let target = ModelRef::new("openai", "small");
        let price = Some(Price { input: 0.02, output: 0.0, cache_read: None, cache_write: None });
        let call = EmbeddingCall {
            target: &target,
            texts: &["four words of text", "and more"],
            tokens: Some(1_000_000),
            price,
            duration: Duration::from_millis(80),
        };
        let row = call.to_row(Timestamp::UNIX_EPOCH);
        assert_eq!((row.input, row.output, row.by_estimate, row.cost_usd), (1_000_000, 0, false, Some(0.02)));
        assert_eq!((row.model.as_str(), row.duration_ms, row.agent_id), ("openai/small", 80, Uuid::nil()));
        let row = EmbeddingCall { tokens: None, price: None, ..call }.to_row(Timestamp::UNIX_EPOCH);
        assert!((4..20).contains(&row.input) && row.by_estimate && row.cost_usd.is_none(), "{row:?}");
    }
}
