//! Compaction in place: older messages leave the window and the working set stands for them. It changes only the view:
//! the journal keeps the messages, and an undo brings them back into the window. The working set is always derived from
//! the messages themselves, never from an earlier summary.
//!
//! [`plan_compaction`] decides which messages leave. Either a model extracts what to keep of them
//! ([`CompactionPlan::compact_by_model`]) or rules find it ([`CompactionPlan::compact_by_rules`]).

mod compact;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use chorus_proto::{Item, Receipt, TokenBudget, WorkingSet};
use chorus_session::stored_message::StoredMessage;
use serde::{Deserialize, Serialize};

use super::window::working_set_block;
pub use compact::check_worth_keeping;
pub use plan::{CompactionPlan, find_window_start, plan_compaction};

/// How many of the newest messages stay in the window, if they leave room for more.
pub const MIN_KEPT_MESSAGES: usize = 20;

/// The result of a compaction, as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// Index of the first message in the window from then on.
    pub upto: u64,
    /// The derived part of the working set from then on.
    pub derived: DerivedState,
    pub receipt: Receipt,
}

/// The part of a working set that is derived from messages. Pinned facts, the background and what was recalled are not: no
/// compaction changes them.
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Item>,
    pub token_budget: TokenBudget,
}

/// A compaction in force, with the derived part of the working set before it.
#[derive(Debug, Clone)]
pub struct AppliedCompaction {
    pub compaction: Compaction,
    pub previous: DerivedState,
}

/// The compaction by hand that a context began with, as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManualCompaction {
    /// The derived part of the context's first working set.
    pub initial: DerivedState,
    pub receipt: Receipt,
}

/// Decides when a window is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionMode {
    /// If it has more tokens than allowed.
    IfLong,
    /// In any case: the model accepts less than was thought.
    Now,
    /// Not before this call.
    Off,
}

impl DerivedState {
    /// Returns the derived part of a working set.
    #[must_use]
    pub(crate) fn from_working_set(set: &WorkingSet) -> Self {
        let WorkingSet {
            summary,
            topics,
            facts,
            decisions,
            open_tasks,
            files_touched,
            conflicts,
            closed,
            token_budget,
            ..
        } = set.clone();
        Self { summary, topics, facts, decisions, open_tasks, files_touched, conflicts, closed, token_budget }
    }

    /// Replaces the derived part of a working set.
    pub fn apply_to(self, set: &mut WorkingSet) {
        let Self { summary, topics, facts, decisions, open_tasks, files_touched, conflicts, closed, token_budget } =
            self;
        let (background, pinned_facts) = (set.background.take(), std::mem::take(&mut set.pinned_facts));
        let recalled = set.recalled.take();
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
            closed,
            token_budget,
            recalled,
        };
    }

    /// Returns this state with the edits that led from `base` to `current`: what people added, changed or removed
    /// there is added, changed or removed here as well.
    #[must_use]
    pub(crate) fn with_edits(mut self, base: &Self, current: &Self) -> Self {
        let (mut base, mut current) = (base.clone(), current.clone());
        for list in [
            |state: &mut Self| &mut state.topics,
            |state| &mut state.facts,
            |state| &mut state.decisions,
            |state| &mut state.open_tasks,
            |state| &mut state.files_touched,
            |state| &mut state.conflicts,
            |state| &mut state.closed,
        ] as [fn(&mut Self) -> &mut Vec<Item>; 7]
        {
            rebase_items(list(&mut self), list(&mut base), list(&mut current));
        }
        self
    }
}

/// Applies to `items` what distinguishes `current` from `base`. Items are compared by their ids.
fn rebase_items(items: &mut Vec<Item>, base: &[Item], current: &[Item]) {
    if base == current {
        return;
    }
    let by_id = |items: &[Item]| -> HashMap<String, Item> {
        items.iter().map(|item| (item.id.clone(), item.clone())).collect()
    };
    let (before, after) = (by_id(base), by_id(current));
    items.retain_mut(|item| match (before.get(&item.id), after.get(&item.id)) {
        (Some(_), None) => false,
        (Some(was), Some(is)) if was != is => {
            item.clone_from(is);
            true
        }
        _ => true,
    });
    let here: HashSet<String> = items.iter().map(|item| item.id.clone()).collect();
    let is_edit = |item: &&Item| !here.contains(&item.id) && before.get(&item.id) != Some(*item);
    items.extend(current.iter().filter(is_edit).cloned());
}

/// Returns the tokens of the messages and the working set together.
#[must_use]
pub fn tokens_with_working_set(messages: &[StoredMessage], set: &WorkingSet) -> u64 {
    messages.iter().map(StoredMessage::tokens).sum::<u64>() + working_set_block::tokens(set)
}
