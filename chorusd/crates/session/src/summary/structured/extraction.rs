//! The items that were extracted from one chunk or from all.

use chorus_proto::{Item, ItemSource, WorkingSet};

use crate::notes::close_items;
use crate::summary::findings::Findings;
use crate::summary::text_limit::truncate_chars;

/// Length of the longest summary, in characters.
const MAX_SUMMARY_CHARS: usize = 1000;

/// The items of the messages that leave the window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtractionNotes {
    pub found: ExtractedItems,
    /// Reason why part of it does not come from the model, as text for users.
    pub fallback: Option<String>,
}

/// The items that a model extracted, and those that rules found in messages that were not sent to the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtractedItems {
    /// The subject and the current state of the conversation.
    pub summary: Option<String>,
    pub topics: Vec<Item>,
    pub facts: Vec<Item>,
    pub decisions: Vec<Item>,
    pub open_tasks: Vec<Item>,
    pub files_touched: Vec<Item>,
    /// Contradictions; each item contains both sides.
    pub conflicts: Vec<Item>,
    /// Ids of open tasks that are done.
    pub done: Vec<String>,
}

impl ExtractedItems {
    /// Appends the extraction of the next chunk.
    pub fn append(&mut self, next: Self) {
        let _ = next.remove_done(&mut self.open_tasks);
        self.summary = match (self.summary.take(), next.summary) {
            (Some(before), Some(then)) => Some(join_summaries(&before, &then)),
            (before, then) => before.or(then),
        };
        self.topics.extend(next.topics);
        self.facts.extend(next.facts);
        self.decisions.extend(next.decisions);
        self.open_tasks.extend(next.open_tasks);
        self.files_touched.extend(next.files_touched);
        self.conflicts.extend(next.conflicts);
        self.done.extend(next.done);
    }

    /// Returns whether it contains nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.summary.is_none() && self.done.is_empty() && self.items().next().is_none()
    }

    /// Returns whether any part comes from a model.
    #[must_use]
    pub fn has_model_items(&self) -> bool {
        let by_model = |item: &Item| item.source == ItemSource::Model;
        self.summary.is_some() || !self.done.is_empty() || self.items().any(by_model)
    }

    /// Returns the number of characters in all texts.
    #[must_use]
    pub fn chars(&self) -> u64 {
        let texts = self.summary.iter().chain(self.items().map(|item| &item.text));
        texts.map(|text| text.chars().count() as u64).sum()
    }

    /// Adds the items to a working set. Replaces the summary there, and closes the tasks that are done.
    pub fn add_to(self, set: &mut WorkingSet) {
        let done = self.remove_done(&mut set.open_tasks);
        close_items(set, done);
        set.summary = self.summary.or(set.summary.take());
        set.topics.extend(self.topics);
        set.facts.extend(self.facts);
        set.decisions.extend(self.decisions);
        set.open_tasks.extend(self.open_tasks);
        set.files_touched.extend(self.files_touched);
        set.conflicts.extend(self.conflicts);
    }

    /// Removes and returns the tasks that are done, but never those that a user added.
    fn remove_done(&self, tasks: &mut Vec<Item>) -> Vec<Item> {
        tasks.extract_if(.., |task| task.source != ItemSource::Hand && self.done.contains(&task.id)).collect()
    }

    fn items(&self) -> impl Iterator<Item = &Item> {
        let Self { topics, facts, decisions, open_tasks, files_touched, conflicts, .. } = self;
        [topics, facts, decisions, open_tasks, files_touched, conflicts].into_iter().flatten()
    }
}

impl From<Findings> for ExtractedItems {
    fn from(findings: Findings) -> Self {
        let Findings { decisions, open_tasks, files_touched } = findings;
        Self { decisions, open_tasks, files_touched, ..Self::default() }
    }
}

impl From<ExtractedItems> for ExtractionNotes {
    fn from(found: ExtractedItems) -> Self {
        Self { found, fallback: None }
    }
}

/// Joins two summaries: as much as fits of the start of the first, and all of the second, which has the current state.
fn join_summaries(before: &str, then: &str) -> String {
    let then = truncate_chars(then, MAX_SUMMARY_CHARS);
    match MAX_SUMMARY_CHARS.saturating_sub(then.chars().count() + 1) {
        0 => then,
        room => format!("{} {then}", truncate_chars(before, room)),
    }
}
