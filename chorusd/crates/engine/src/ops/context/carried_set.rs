//! The part of a working set that goes on through every resume and compaction by hand.

use chorus_agent_core::window::working_set_block::condense_to_window;
use chorus_agent_core::window::{CondensedItems, cap_carried_items};
use chorus_proto::{Item, ItemSource, WorkingSet};

/// The limit on unresolved contradictions that are carried on.
const MAX_CONFLICTS: usize = 50;

/// The working set of a continuation, and how much of it has no room.
#[derive(Debug)]
pub(super) struct CarriedSet {
    pub working_set: WorkingSet,
    /// Decisions and open tasks that the window does not show in full.
    pub condensed: CondensedItems,
    /// Decisions and open tasks that the working set does not keep, because there are too many of them.
    pub dropped: u64,
}

impl CarriedSet {
    /// Limits the decisions and open tasks in `working_set`. `tokens` is what the window may have.
    pub(super) fn new(mut working_set: WorkingSet, tokens: u64) -> Self {
        let dropped = cap_carried_items(&mut working_set.decisions) + cap_carried_items(&mut working_set.open_tasks);
        let (_, condensed) = condense_to_window(&working_set, tokens);
        Self { working_set, condensed, dropped }
    }

    /// Returns the warning about what has no room, if there is any. `session` has every message.
    pub(super) fn warning(&self, session: &str) -> Option<String> {
        let CondensedItems { shortened, left_out } = self.condensed;
        let mut said = Vec::new();
        if shortened > 0 {
            said.push(format!("{shortened} shortened"));
        }
        if left_out > 0 {
            said.push(format!("{left_out} left out"));
        }
        let mut text = String::new();
        if !said.is_empty() {
            text = format!(
                "too many decisions and open tasks for the window ({}); see them all: chorusctl notes list",
                said.join(", ")
            );
        }
        if self.dropped > 0 {
            let rest = format!("{} decisions and open tasks were not carried on; {session} has them", self.dropped);
            text = if text.is_empty() { rest } else { format!("{text}; {rest}") };
        }
        (!text.is_empty()).then_some(text)
    }
}

/// Returns what goes on from a working set: pinned facts, decisions, open tasks, unresolved contradictions, and
/// everything else that people added. The rest is in the background.
pub(super) fn carry_on(set: &WorkingSet) -> WorkingSet {
    let by_hand = |items: &[Item]| items.iter().filter(|item| item.source == ItemSource::Hand).cloned().collect();
    let newest = set.conflicts.len().saturating_sub(MAX_CONFLICTS);
    WorkingSet {
        pinned_facts: set.pinned_facts.clone(),
        facts: by_hand(&set.facts),
        topics: by_hand(&set.topics),
        files_touched: by_hand(&set.files_touched),
        decisions: set.decisions.clone(),
        open_tasks: set.open_tasks.clone(),
        conflicts: set.conflicts[newest..].to_vec(),
        closed: set.closed.clone(),
        ..WorkingSet::default()
    }
}
