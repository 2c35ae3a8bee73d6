//! What was found, from one piece or from all.

use chorus_proto::{Item, WorkingSet};

use crate::summary::fit::cut;

/// The longest summary, in characters.
const SUMMARY: usize = 1000;

/// What a model wrote down of the messages that leave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// What it was about and how it stands.
    pub summary: Option<String>,
    pub topics: Vec<Item>,
    pub facts: Vec<Item>,
    pub decisions: Vec<Item>,
    pub open_tasks: Vec<Item>,
    pub files_touched: Vec<Item>,
    /// Where two of them contradict each other: both, in one text.
    pub conflicts: Vec<Item>,
}

impl Found {
    /// Takes what was found in the next piece.
    pub fn join(&mut self, next: Self) {
        self.summary = match (self.summary.take(), next.summary) {
            (Some(before), Some(then)) => Some(cut(&format!("{before} {then}"), SUMMARY)),
            (before, then) => before.or(then),
        };
        self.topics.extend(next.topics);
        self.facts.extend(next.facts);
        self.decisions.extend(next.decisions);
        self.open_tasks.extend(next.open_tasks);
        self.files_touched.extend(next.files_touched);
        self.conflicts.extend(next.conflicts);
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.summary.is_none() && self.items().next().is_none()
    }

    /// Characters of all texts.
    #[must_use]
    pub fn chars(&self) -> u64 {
        let texts = self.summary.iter().chain(self.items().map(|item| &item.text));
        texts.map(|text| text.chars().count() as u64).sum()
    }

    /// Adds the items to those of a working set; the summary takes the place of that there.
    pub fn add_to(self, set: &mut WorkingSet) {
        set.summary = self.summary.or(set.summary.take());
        set.topics.extend(self.topics);
        set.facts.extend(self.facts);
        set.decisions.extend(self.decisions);
        set.open_tasks.extend(self.open_tasks);
        set.files_touched.extend(self.files_touched);
        set.conflicts.extend(self.conflicts);
    }

    fn items(&self) -> impl Iterator<Item = &Item> {
        let Self { topics, facts, decisions, open_tasks, files_touched, conflicts, .. } = self;
        [topics, facts, decisions, open_tasks, files_touched, conflicts].into_iter().flatten()
    }
}
