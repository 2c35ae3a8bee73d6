//! The row of a call.

use jiff::Timestamp;
use uuid::Uuid;

use super::{CallKind, UsageRow};
use crate::agent::Facts;
use crate::llm::{CallError, Reply, Target};
use crate::message::ContextNo;

/// No call uses as many tokens. What a server claims beyond it would make sums overflow, of which caps are made.
const MOST: u64 = 1 << 40;

/// Who calls a model, and what for.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    pub facts: &'a Facts,
    pub context: Option<ContextNo>,
    pub turn_id: Option<Uuid>,
    pub kind: CallKind,
    pub target: &'a Target,
    /// Tokens of the request, as [`crate::estimate`] counts them.
    pub estimated: u64,
    /// When.
    pub at: Timestamp,
}

impl Caller<'_> {
    /// The row of a call that ended well.
    #[must_use]
    pub fn replied(&self, reply: &Reply) -> UsageRow {
        self.row(&reply.usage, reply.cache_write_tokens)
    }

    /// The row of a call that failed, where its provider had counted something before.
    #[must_use]
    pub fn failed(&self, error: &CallError) -> Option<UsageRow> {
        error.usage.as_deref().map(|usage| self.row(usage, None))
    }

    /// The row of either.
    #[must_use]
    pub fn ended(&self, result: &Result<Reply, CallError>) -> Option<UsageRow> {
        match result {
            Ok(reply) => Some(self.replied(reply)),
            Err(error) => self.failed(error),
        }
    }

    fn row(&self, usage: &chorus_proto::Usage, cache_write: Option<u64>) -> UsageRow {
        let counted = |tokens: Option<u64>| tokens.unwrap_or(0).min(MOST);
        UsageRow {
            at: self.at,
            agent_id: self.facts.id,
            agent_name: self.facts.name.clone(),
            context: self.context,
            turn_id: self.turn_id,
            model: self.target.to_string(),
            kind: self.kind,
            input: counted(usage.input_tokens),
            estimated: self.estimated,
            output: counted(usage.output_tokens),
            cache_read: counted(usage.cache_read_tokens),
            cache_write: counted(cache_write),
            cost_usd: usage.cost_usd,
            duration_ms: usage.duration_ms.unwrap_or(0),
        }
    }
}
