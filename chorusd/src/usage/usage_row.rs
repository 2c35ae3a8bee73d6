//! The row of a call.

use chorus_proto::Usage;
use jiff::Timestamp;
use uuid::Uuid;

use super::{CallKind, UsageRow};
use crate::agent::AgentSettings;
use crate::config::Price;
use crate::llm::{CallError, CallProgress, ModelRef, Reply, calculate_cost};
use crate::message::ContextNo;
use crate::token_estimate;

/// No call uses as many tokens. What a server claims beyond it would make sums overflow, of which caps are made.
const MAX_TOKENS: u64 = 1 << 40;

/// Who calls a model, and what for.
#[derive(Debug, Clone, Copy)]
pub struct ModelCallInfo<'a> {
    pub agent: &'a AgentSettings,
    pub context: Option<ContextNo>,
    pub turn_id: Option<Uuid>,
    pub kind: CallKind,
    pub target: &'a ModelRef,
    /// What the model costs, where that is known.
    pub price: Option<Price>,
    /// Tokens of the request, as [`crate::estimate`] counts them.
    pub estimated: u64,
    /// When.
    pub at: Timestamp,
}

/// What of an answer counts.
#[derive(Debug, Clone, Copy)]
enum Received {
    /// All of it, so many bytes.
    Complete(u64),
    /// So many bytes; what was counted until then may be less.
    Partial(u64),
}

impl ModelCallInfo<'_> {
    /// Returns the row of a call, whatever came of it; `None`: no server has heard of it.
    ///
    /// What the server counted stands. Where it counted nothing the estimate counts and the row says so; a call that was refused used
    /// nothing.
    #[must_use]
    pub fn to_row(&self, result: &Result<Reply, CallError>) -> Option<UsageRow> {
        let error = match result {
            Ok(reply) => {
                return Some(self.row_with_estimate(
                    &reply.usage,
                    reply.cache_write_tokens,
                    Received::Complete(reply.output_bytes()),
                ));
            }
            Err(error) => error,
        };
        let reported = error.usage.as_deref();
        match error.progress {
            CallProgress::Unsent => None,
            CallProgress::Rejected if reported.is_none() => {
                Some(UsageRow { cost_usd: self.price.map(|_| 0.0), ..self.reported_row(&Usage::default(), None) })
            }
            CallProgress::Rejected => {
                Some(self.row_with_estimate(&reported.cloned().unwrap_or_default(), None, Received::Partial(0)))
            }
            CallProgress::Accepted { received } => {
                Some(self.row_with_estimate(&reported.cloned().unwrap_or_default(), None, Received::Partial(received)))
            }
        }
    }

    /// The row of what was reported, with the estimate where nothing was.
    fn row_with_estimate(&self, usage: &Usage, cache_write: Option<u64>, came: Received) -> UsageRow {
        let reported = |tokens: Option<u64>| tokens.filter(|tokens| *tokens > 0);
        let (input, output) = (reported(usage.input_tokens), reported(usage.output_tokens));
        let written = match (came, output) {
            (Received::Complete(_), Some(output)) => output,
            (Received::Complete(bytes), None) => token_estimate::tokens_of_bytes(bytes),
            // The last count is the one that says all, and it did not come.
            (Received::Partial(bytes), output) => token_estimate::tokens_of_bytes(bytes).max(output.unwrap_or(0)),
        };
        if input.is_some() && written == output.unwrap_or(0) {
            return self.reported_row(usage, cache_write);
        }
        let counted = Usage {
            input_tokens: Some(input.unwrap_or(self.estimated)),
            output_tokens: Some(written),
            ..usage.clone()
        };
        let cost = self.price.map(|price| calculate_cost(&price, &counted, cache_write)).or(usage.cost_usd);
        UsageRow { by_estimate: true, cost_usd: cost, ..self.reported_row(&counted, cache_write) }
    }

    fn reported_row(&self, usage: &Usage, cache_write: Option<u64>) -> UsageRow {
        let counted = |tokens: Option<u64>| tokens.unwrap_or(0).min(MAX_TOKENS);
        UsageRow {
            at: self.at,
            agent_id: self.agent.id,
            agent_name: self.agent.name.clone(),
            context: self.context,
            turn_id: self.turn_id,
            model: self.target.to_string(),
            kind: self.kind,
            input: counted(usage.input_tokens),
            estimated: self.estimated,
            output: counted(usage.output_tokens),
            cache_read: counted(usage.cache_read_tokens),
            cache_write: counted(cache_write),
            by_estimate: false,
            cost_usd: usage.cost_usd,
            duration_ms: usage.duration_ms.unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::{ErrorClass, StopReason};

    fn tokens(input: Option<u64>, output: Option<u64>) -> Usage {
        Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
    }

    fn row(result: &Result<Reply, CallError>) -> Option<(u64, u64, bool, Option<f64>)> {
        let (facts, target) = (AgentSettings::default(), ModelRef::new("p", "m"));
        let price = Some(Price { input: 1e6, output: 1e6, ..Price::default() });
        let at = Timestamp::UNIX_EPOCH;
        let (kind, estimated) = (CallKind::Turn, 100);
        let caller =
            ModelCallInfo { agent: &facts, context: None, turn_id: None, kind, target: &target, price, estimated, at };
        caller.to_row(result).map(|row| (row.input, row.output, row.by_estimate, row.cost_usd))
    }

    fn replied(usage: Usage) -> Option<(u64, u64, bool, Option<f64>)> {
        let content = "x".repeat(40);
        row(&Ok(Reply {
            content,
            tool_calls: Vec::new(),
            provider: None,
            usage,
            cache_write_tokens: None,
            stop: StopReason::End,
        }))
    }

    fn failed(progress: CallProgress, usage: Option<Usage>) -> Option<(u64, u64, bool, Option<f64>)> {
        let error = CallError::new(ErrorClass::Cancelled, "");
        row(&Err(CallError { progress, usage: usage.map(Box::new), ..error }))
    }

    #[test]
    fn what_a_server_does_not_count_is_estimated() {
        assert_eq!(replied(Usage { cost_usd: Some(1.0), ..tokens(Some(7), Some(3)) }), Some((7, 3, false, Some(1.0))));
        assert_eq!(replied(tokens(None, None)), Some((100, 10, true, Some(110.0))));
        // Ollama says 0 where the prompt was in its cache: https://github.com/ollama/ollama/issues/5370
        assert_eq!(replied(tokens(Some(0), Some(3))), Some((100, 3, true, Some(103.0))));
        assert_eq!(replied(tokens(Some(7), Some(0))), Some((7, 10, true, Some(17.0))));
    }

    #[test]
    fn a_call_that_failed_counts_as_far_as_it_came() {
        let taken = |received| CallProgress::Accepted { received };
        assert_eq!(failed(CallProgress::Unsent, None), None);
        assert_eq!(failed(CallProgress::Rejected, None), Some((0, 0, false, Some(0.0))));
        assert_eq!(failed(taken(0), None), Some((100, 0, true, Some(100.0))));
        assert_eq!(failed(taken(80), None), Some((100, 20, true, Some(120.0))));
        // Anthropic counts the input at the beginning, and one token of the output.
        assert_eq!(failed(taken(80), Some(tokens(Some(7), Some(1)))), Some((7, 20, true, Some(27.0))));
        assert_eq!(failed(taken(8), Some(tokens(Some(7), Some(3)))), Some((7, 3, false, None)));
    }
}
