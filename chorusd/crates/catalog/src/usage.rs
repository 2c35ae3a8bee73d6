//! Rows of usage: one per model call.

use std::collections::HashMap;
use std::fmt::Debug;

use chorus_session::stored_message::ContextNo;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use uuid::Uuid;

use crate::{CatalogRead, CatalogWrite, DailyUsageRow};

/// A quarter of an hour in nanoseconds: all time zones have offsets of whole quarters.
pub const QUARTER_HOUR_NANOS: i64 = 15 * 60 * 1_000_000_000;

/// Purpose of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    Turn,
    Summary,
    Acknowledgement,
    /// Report about a merge of two branches.
    MergeReport,
    Compaction,
    /// Vectors of messages or of a query, for the search by meaning.
    Embedding,
}

impl CallKind {
    /// The word in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Summary => "summary",
            Self::Acknowledgement => "acknowledgement",
            Self::MergeReport => "account",
            Self::Compaction => "compaction",
            Self::Embedding => "embedding",
        }
    }
}

/// One model call.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageRow {
    pub at: Timestamp,
    pub agent_id: Uuid,
    /// Name of the agent at that time.
    pub agent_name: String,
    pub context: Option<ContextNo>,
    /// `None` for `main`.
    pub conversation_id: Option<Uuid>,
    pub turn_id: Option<Uuid>,
    /// `provider/model`.
    pub model: String,
    pub kind: CallKind,
    /// Tokens of the whole input, including cached ones.
    pub input: u64,
    /// Token estimate of the input before the call; 0 if there was none.
    pub estimated: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// True if the token counts are estimates, in part or all, because the server did not report them.
    pub by_estimate: bool,
    /// `None` if no price is known.
    pub cost_usd: Option<f64>,
    pub duration_ms: u64,
}

/// Usage of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spending {
    /// Input and output.
    pub tokens: u64,
    /// In US dollars, of the calls with a known price.
    pub cost: f64,
    pub calls: u64,
    /// Number of calls without a known price.
    pub unpriced: u64,
}

/// Selects model calls.
#[derive(Debug, Clone)]
pub struct UsageFilter {
    /// Empty means all agents.
    pub agents: Vec<Uuid>,
    pub since: Option<Timestamp>,
    /// Time zone in which days are counted.
    pub zone: TimeZone,
    /// Divides the sums by conversation.
    pub by_conversation: bool,
}

/// Sums over model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UsageTotals {
    pub calls: u64,
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    /// In US dollars, of the calls with a known price.
    pub cost: f64,
    /// Number of calls without a known price.
    pub unpriced: u64,
    /// Number of calls with estimated token counts.
    pub by_estimate: u64,
    /// Number of calls of other programs that had more output tokens than those recorded.
    pub lower_bound: u64,
}

impl UsageTotals {
    /// Adds the sums of `other`.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cost += other.cost;
        self.unpriced += other.unpriced;
        self.by_estimate += other.by_estimate;
        self.lower_bound += other.lower_bound;
    }

    /// The cost, or `None` if there are calls but the price of none is known.
    #[must_use]
    pub fn known_cost(&self) -> Option<f64> {
        (self.unpriced < self.calls || self.calls == 0).then_some(self.cost)
    }
}

/// The table of model calls.
pub trait UsageTable: Debug + Send + Sync {
    /// Inserts a row; returns its number, which is higher than those of all rows before it.
    fn insert(&self, row: UsageRow) -> CatalogWrite<i64>;

    /// Returns the usage of each agent since `since`, and the number of the newest row that is counted; 0 if there is none.
    fn spending_by_agent(&self, since: Timestamp) -> CatalogRead<'_, (HashMap<Uuid, Spending>, i64)>;

    /// Returns the newest `count` calls that have both a token estimate and a count by the server, oldest first: model,
    /// estimate, input, and the part of the input that was read from the cache. Leaves out those whose estimate was made
    /// by an earlier formula.
    fn estimated_calls(&self, count: u32) -> CatalogRead<'_, Vec<(String, u64, u64, u64)>>;

    /// Returns the usage by day, agent and model, newest day first, in the order of [`DailyUsage`](crate::DailyUsage).
    fn list_daily(&self, filter: UsageFilter) -> CatalogRead<'_, Vec<DailyUsageRow>>;

    /// Returns the ids of agents that called models under this name, including destroyed ones.
    fn agents_named(&self, name: String) -> CatalogRead<'_, Vec<Uuid>>;
}
