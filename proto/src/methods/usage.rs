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
    /// Divide the sums further, or differently.
    pub by: Option<UsageBy>,
}

/// By what usage is divided.
#[wire(Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// By conversation, besides day, agent and model.
    Conversation,
    /// By program, also that of imported and captured conversations, as all of the following.
    Source,
    /// By program and directory.
    Project,
    /// By program and model.
    Model,
    /// By program and day.
    Day,
}

#[wire(PartialEq)]
pub struct UsageResult {
    /// The newest day is first.
    pub days: Vec<UsageDay>,
    /// In place of `days`, if usage is divided by source, project, model or day: the newest day first, otherwise the highest cost.
    #[omit_empty]
    pub groups: Vec<UsageGroup>,
    pub total: UsageSums,
    /// There is usage of imported or captured conversations, and `total` does not contain it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_imported: bool,
    /// Calls of imported or captured conversations that `total` does not contain.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub imported_calls: u64,
    /// Names under which `[prices]` needs the prices of models with calls of unknown price, those with the most calls first.
    #[omit_empty]
    pub unpriced_models: Vec<String>,
    /// Names in `[prices]` without `cache_read`, although input was read from the cache: it counts at the price of other input.
    #[omit_empty]
    pub cached_as_input: Vec<String>,
}

/// The calls of a program, for a project, by a model or on a day.
#[wire(PartialEq)]
pub struct UsageGroup {
    /// `chorus` for Chorus's own agents, otherwise the program of imported conversations.
    pub source: String,
    /// The directory that the conversations were held in.
    #[omit_empty]
    pub project: Option<String>,
    /// As the program names it; `provider/model` for Chorus's own agents.
    #[omit_empty]
    pub model: Option<String>,
    /// From midnight to midnight in the daemon's time zone.
    #[omit_empty]
    pub day: Option<Date>,
    #[serde(flatten)]
    pub sums: UsageSums,
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
    /// Calls of other programs that had more output tokens than the program recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lower_bound_calls: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
