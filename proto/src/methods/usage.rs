//! `usage`: tokens and cost of model calls.

use jiff::civil::Date;

use super::{method, wire};

method!(
    /// Reports the usage of model calls by day, agent and model.
    Show = "usage", UsageParams => UsageResult
);

#[wire(params)]
pub struct UsageParams {
    /// Only this agent, deleted or not; by default all agents.
    pub agent: Option<String>,
    /// A duration back from now (`7d`, `1h30m`) or a date.
    pub since: Option<String>,
    /// Divide the sums further.
    pub by: Option<UsageBy>,
}

/// By what usage is divided, besides day, agent and model.
#[wire(Copy, PartialEq, Eq)]
pub enum UsageBy {
    Conversation,
}

#[wire(PartialEq)]
pub struct UsageResult {
    /// The newest day is first.
    pub days: Vec<UsageDay>,
    pub total: UsageSums,
}

/// The calls of an agent, or of one of its conversations, by one model on one day.
#[wire(PartialEq)]
pub struct UsageDay {
    /// From midnight to midnight in the daemon's time zone.
    pub day: Date,
    /// Empty for the vectors of messages and queries, which are no agent's.
    pub agent: String,
    /// Name of the conversation, if they are divided by it; its id if it is not known any more.
    #[omit_empty]
    pub conversation: Option<String>,
    /// `provider/model`.
    pub model: String,
    #[serde(flatten)]
    pub sums: UsageSums,
}

/// Totals of several calls.
#[wire(Copy, Default, PartialEq)]
pub struct UsageSums {
    pub calls: u64,
    /// Tokens of the whole input, including cached ones.
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    /// Cost in US dollars of the calls with a known price; null if no price is known.
    pub cost_usd: Option<f64>,
    /// Calls of unknown price; the cost does not include them.
    pub unpriced_calls: u64,
    /// Calls with estimated tokens, in part or all, because the server did not report them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated_calls: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
