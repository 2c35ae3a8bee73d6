//! Builds the usage row of a model call.

use chorus_agent_core::AgentSettings;
use chorus_config::Price;
use chorus_llm::{CallError, CallProgress, ModelRef, Reply, calculate_cost};
use chorus_proto::Usage;
use chorus_session::stored_message::ContextNo;
use chorus_session::token_estimate;
use jiff::Timestamp;
use uuid::Uuid;

use super::{CallKind, UsageRow};

/// Maximum plausible tokens of a call. Larger numbers from a server could overflow the sums that limits are checked
/// with.
pub(super) const MAX_TOKENS: u64 = 1 << 40;

/// The purpose of a model call, and the agent that makes it.
#[derive(Debug, Clone, Copy)]
pub struct ModelCallInfo<'a> {
    pub agent: &'a AgentSettings,
    /// Id of the conversation that it is for; `None` for `main`.
    pub conversation: Option<Uuid>,
    pub context: Option<ContextNo>,
    pub turn_id: Option<Uuid>,
    pub kind: CallKind,
    pub target: &'a ModelRef,
    /// Price of the model, if known.
    pub price: Option<Price>,
    /// Estimated tokens of the request ([`chorus_session::token_estimate`]).
    pub estimated: u64,
    /// When the call started.
    pub at: Timestamp,
}

/// How much of a reply was received, in bytes.
#[derive(Debug, Clone, Copy)]
enum Received {
    /// The complete reply.
    Complete(u64),
    /// Part of it; the reported output tokens may be fewer than those received.
    Partial(u64),
}

impl ModelCallInfo<'_> {
    /// Returns the row for the outcome of a call, or `None` if the request never reached a server.
    ///
    /// Numbers that the server reported are used as they are. Missing ones are estimated, which the row notes. A
    /// refused call used nothing.
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

    /// Returns the row of the reported usage, with estimates for missing numbers.
    fn row_with_estimate(&self, usage: &Usage, cache_write: Option<u64>, came: Received) -> UsageRow {
        let reported = |tokens: Option<u64>| tokens.filter(|tokens| *tokens > 0);
        let (input, output) = (reported(usage.input_tokens), reported(usage.output_tokens));
        let written = match (came, output) {
            (Received::Complete(_), Some(output)) => output,
            (Received::Complete(bytes), None) => token_estimate::tokens_of_bytes(bytes),
            // The final count comes with the last event, which is missing.
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
            conversation_id: self.conversation,
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
    use chorus_llm::{ErrorClass, StopReason};

    use super::*;

    fn tokens(input: Option<u64>, output: Option<u64>) -> Usage {
        Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
    }

    fn row(result: &Result<Reply, CallError>) -> Option<(u64, u64, bool, Option<f64>)> {
        let (settings, target) = (AgentSettings::default(), ModelRef::new("p", "m"));
        let price = Some(Price { input: 1e6, output: 1e6, ..Price::default() });
        let at = Timestamp::UNIX_EPOCH;
        let (kind, estimated) = (CallKind::Turn, 100);
        let caller = ModelCallInfo {
            agent: &settings,
            conversation: None,
            context: None,
            turn_id: None,
            kind,
            target: &target,
            price,
            estimated,
            at,
        };
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
        // Ollama reports 0 if the prompt was in its cache: https://github.com/ollama/ollama/issues/5370
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
        // Anthropic reports the input at the beginning, and one output token.
        assert_eq!(failed(taken(80), Some(tokens(Some(7), Some(1)))), Some((7, 20, true, Some(27.0))));
        assert_eq!(failed(taken(8), Some(tokens(Some(7), Some(3)))), Some((7, 3, false, None)));
    }
}
