//! Compaction in place: older messages leave the window for the working set. It is a view: the record stays, and an undo shows the
//! messages again. What is kept of them is made from the messages themselves, never from an earlier summary.
//!
//! [`plan()`] decides which messages leave; what is kept of them a model may have written down ([`Plan::by_model`]), else rules find it
//! ([`Plan::by_rules`]).

mod outcome;
mod plan;
#[cfg(test)]
mod tests;

use chorus_proto::{Item, Receipt, TokenBudget, WorkingSet};
use serde::{Deserialize, Serialize};

use super::window::working_set_block;
use crate::message::StoredMessage;

pub use outcome::check_worth_keeping;
pub use plan::{CompactionPlan, find_window_start, plan_compaction};

/// The newest messages that stay in the window, where they leave room for more.
pub const MIN_KEPT_MESSAGES: usize = 20;

/// What one compaction did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// The window begins with the message of this number from then on, counted from 0.
    pub upto: u64,
    /// The working set from then on, but for what people put into it.
    pub derived: DerivedState,
    pub receipt: Receipt,
}

/// The part of a working set that is made from messages. Pins and the background are not in it: no compaction changes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DerivedState {
    pub summary: Option<String>,
    pub topics: Vec<Item>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Item>,
    pub decisions: Vec<Item>,
    pub open_tasks: Vec<Item>,
    pub files_touched: Vec<Item>,
    pub conflicts: Vec<Item>,
    pub token_budget: TokenBudget,
}

/// A compaction that holds, and what the working set was before it.
#[derive(Debug, Clone)]
pub struct AppliedCompaction {
    pub compaction: Compaction,
    pub previous: DerivedState,
}

/// When a window is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionMode {
    /// When it has more tokens than it may.
    IfLong,
    /// Now: the model takes less than was thought.
    Now,
    /// Not in this call.
    Off,
}

impl DerivedState {
    /// That of a working set.
    #[must_use]
    pub fn from_working_set(set: &WorkingSet) -> Self {
        let WorkingSet {
            summary, topics, facts, decisions, open_tasks, files_touched, conflicts, token_budget, ..
        } = set.clone();
        Self { summary, topics, facts, decisions, open_tasks, files_touched, conflicts, token_budget }
    }

    /// Takes its place in a working set.
    pub fn apply_to(self, set: &mut WorkingSet) {
        let Self { summary, topics, facts, decisions, open_tasks, files_touched, conflicts, token_budget } = self;
        let (background, pinned_facts) = (set.background.take(), std::mem::take(&mut set.pinned_facts));
        *set = WorkingSet {
            background,
            summary,
            topics,
            pinned_facts,
            facts,
            decisions,
            open_tasks,
            files_touched,
            conflicts,
            token_budget,
        };
    }
}

/// Tokens of what could be shown: the messages and the working set.
#[must_use]
pub fn tokens_with_working_set(messages: &[StoredMessage], set: &WorkingSet) -> u64 {
    messages.iter().map(StoredMessage::tokens).sum::<u64>() + working_set_block::tokens(set)
}
