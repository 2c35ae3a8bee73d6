//! Builds the working set and the receipt of a compaction.

use chorus_proto::{Item, ItemSource, Receipt, TokenBudget, WorkingSet};
use chorus_session::stored_message::{StoredMessage, Totals};
use chorus_session::summary;
use chorus_session::summary::{
    ConversationSample, ExtractedItems, ExtractionNotes, FindingLimits, RejectReason, collect_findings,
};

use super::{Compaction, CompactionPlan, DerivedState, tokens_with_working_set};
use crate::window::{carried_items, working_set_block};

/// Shares of the derived tokens for the items of each kind, if every kind needs its share; and their sum. Decisions and
/// open tasks have none: they stay until they are done or removed, and the window condenses them.
const FACTS_SHARE: u64 = 5;
const CONFLICTS_SHARE: u64 = 2;
const FILES_SHARE: u64 = 2;
const TOPICS_SHARE: u64 = 1;
const TOTAL_SHARES: u64 = FACTS_SHARE + CONFLICTS_SHARE + FILES_SHARE + TOPICS_SHARE;

impl CompactionPlan {
    /// Compacts by rules: adds the findings of the rules in the leaving messages to the earlier ones, and an extractive
    /// summary of all messages that have left. Deterministic. `fallback` is the reason why no model did this, if there
    /// is one.
    #[must_use]
    pub fn compact_by_rules(&self, record: &[StoredMessage], set: &WorkingSet, fallback: Option<String>) -> Compaction {
        let found = collect_findings(&record[self.from..self.upto], set, FindingLimits::PER_COMPACTION);
        let mut after = set.clone();
        ExtractedItems::from(found).add_to(&mut after);
        after.summary = extractive_summary(&record[..self.upto]);
        let dropped = self.drop_oldest_items(&mut after);
        let receipt =
            Receipt { source: Some(ItemSource::Rule), fallback, dropped, ..self.build_receipt(record, &after) };
        Compaction { upto: self.upto as u64, derived: DerivedState::from_working_set(&after), receipt }
    }

    /// Compacts with a model's notes on the leaving messages, which are added to the earlier findings. `fallback` says
    /// why the notes do not cover all of them.
    ///
    /// # Errors
    /// The reason why the notes are unusable, worded to follow "the model's answer".
    pub fn compact_by_model(
        &self,
        record: &[StoredMessage],
        set: &WorkingSet,
        notes: ExtractionNotes,
    ) -> Result<Compaction, RejectReason> {
        let ExtractionNotes { found, fallback } = notes;
        check_worth_keeping(&found, &record[self.from..self.upto])?;
        let offered = found.facts.iter().map(|fact| fact.text.clone()).collect();
        let told = found.summary.is_some();
        let mut after = set.clone();
        let closed = |task: &&Item| task.source != ItemSource::Hand && found.done.contains(&task.id);
        let done = set.open_tasks.iter().filter(closed).map(|task| task.text.clone()).collect();
        found.add_to(&mut after);
        if !told {
            after.summary = extractive_summary(&record[..self.upto]);
        }
        let dropped = self.drop_oldest_items(&mut after);
        let receipt = Receipt {
            source: Some(ItemSource::Model),
            fallback,
            offered,
            done,
            dropped,
            ..self.build_receipt(record, &after)
        };
        Ok(Compaction { upto: self.upto as u64, derived: DerivedState::from_working_set(&after), receipt })
    }

    /// Drops the oldest derived items until the derived part of the working set has at most `derived_limit` tokens.
    /// Returns how many were dropped. Each kind has its share; the unused part of a share goes to the others, and items
    /// are dropped only from kinds that exceed theirs. Decisions and open tasks count, but leave a part to the others;
    /// of them, only those over [`MAX_CARRIED_ITEMS`](crate::window::MAX_CARRIED_ITEMS) are dropped. Items that people
    /// added stay and do not count.
    fn drop_oldest_items(&self, set: &mut WorkingSet) -> u64 {
        let mut dropped = carried_items::cap(&mut set.decisions) + carried_items::cap(&mut set.open_tasks);
        let by_hand = working_set_block::chars(&without_derived(set));
        let of = |list: &[Item]| list.iter().map(item_chars).sum::<u64>();
        let carried = of(&set.decisions) + of(&set.open_tasks);
        let mut chars = working_set_block::chars(set).saturating_sub(by_hand + carried);
        let limit = self.derived_limit.saturating_mul(4);
        let limit = limit.saturating_sub(carried).max(limit / working_set_block::OTHER_ITEMS_DIVISOR);
        let mut lists = [
            (&mut set.facts, FACTS_SHARE),
            (&mut set.conflicts, CONFLICTS_SHARE),
            (&mut set.files_touched, FILES_SHARE),
            (&mut set.topics, TOPICS_SHARE),
        ]
        .map(|(list, share)| SharedList::new(list, share));
        while chars > limit {
            let most = lists
                .iter_mut()
                .filter(|list| list.oldest().is_some())
                .max_by_key(|list| list.chars * TOTAL_SHARES / list.share);
            let Some(list) = most else { break };
            chars = chars.saturating_sub(list.drop_oldest());
        }
        dropped += lists.into_iter().map(SharedList::finish).sum::<u64>();
        let shown = self.shown(set);
        let summary = set.summary.as_ref().map_or(0, |summary| summary.chars().count() as u64);
        let limit = self.derived_limit + (by_hand + summary).div_ceil(4);
        set.token_budget = TokenBudget { used: working_set_block::chars(&shown) / 4, limit };
        dropped
    }

    /// Returns the working set as the next window shows it.
    fn shown(&self, set: &WorkingSet) -> WorkingSet {
        match self.reduced {
            true => working_set_block::fit_to_reduced_window(set, self.limit.min(self.tokens_before)),
            false => working_set_block::fit_to_window(set, self.limit),
        }
    }

    fn build_receipt(&self, record: &[StoredMessage], after: &WorkingSet) -> Receipt {
        let (shown, condensed) = (self.shown(after), working_set_block::condense_to_window(after, self.limit).1);
        let id =
            |index: usize| record.get(index).and_then(|message| message.to_message().ok()).map(|message| message.id);
        Receipt {
            tokens_before: self.tokens_before,
            tokens_after: tokens_with_working_set(&record[self.upto..], &shown),
            condensed: condensed.count(),
            left: (self.upto - self.from) as u64,
            kept: (record.len() - self.upto) as u64,
            from: id(self.from),
            to: id(self.upto - 1),
            pins: after.pinned_facts.iter().map(|fact| fact.text.clone()).collect(),
            ..Receipt::default()
        }
    }
}

/// Checks that the findings are not empty and shorter than the messages.
pub fn check_worth_keeping(found: &ExtractedItems, messages: &[StoredMessage]) -> Result<(), RejectReason> {
    if found.is_empty() {
        return Err("has no content");
    }
    let said = Totals::count(messages).chars;
    if found.chars() >= said { Err("is longer than the conversation") } else { Ok(()) }
}

fn extractive_summary(left: &[StoredMessage]) -> Option<String> {
    let mut digest = ConversationSample::new();
    for index in ConversationSample::selected_indices(left.len()) {
        if let Ok(message) = left[index].to_message() {
            digest.push(&message);
        }
    }
    summary::extract_summary(&digest).summary
}

/// Returns the working set without its derived part.
pub(super) fn without_derived(set: &WorkingSet) -> WorkingSet {
    let mut set = set.clone();
    DerivedState::default().apply_to(&mut set);
    set
}

/// A list from which the oldest items may be dropped.
struct SharedList<'a> {
    list: &'a mut Vec<Item>,
    share: u64,
    /// Characters of the remaining items.
    chars: u64,
    /// The items before this index are dropped, except those that people added.
    upto: usize,
}

impl<'a> SharedList<'a> {
    fn new(list: &'a mut Vec<Item>, share: u64) -> Self {
        let chars = list.iter().map(item_chars).sum();
        Self { list, share, chars, upto: 0 }
    }

    /// Returns the index of the oldest item that may be dropped.
    fn oldest(&self) -> Option<usize> {
        (self.upto..self.list.len()).find(|at| self.list[*at].source != ItemSource::Hand)
    }

    /// Drops the oldest item and returns its characters.
    fn drop_oldest(&mut self) -> u64 {
        let Some(at) = self.oldest() else { return 0 };
        let chars = item_chars(&self.list[at]);
        self.upto = at + 1;
        self.chars = self.chars.saturating_sub(chars);
        chars
    }

    /// Removes the dropped items and returns how many there were.
    fn finish(self) -> u64 {
        let before = self.list.len();
        let mut at = 0;
        self.list.retain(|item| {
            at += 1;
            at > self.upto || item.source == ItemSource::Hand
        });
        (before - self.list.len()) as u64
    }
}

/// Returns the characters of an item in the rendered block.
fn item_chars(item: &Item) -> u64 {
    item.text.chars().count() as u64 + 3
}
