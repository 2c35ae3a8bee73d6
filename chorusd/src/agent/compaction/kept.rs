//! What is kept of the messages that leave.

use chorus_proto::{Item, ItemSource, Receipt, TokenBudget, WorkingSet};

use super::{Compaction, Derived, Plan, tokens};
use crate::agent::window::block;
use crate::message::{Stored, Totals};
use crate::summary::{self, Digest, Found, MOST, Notes, Unusable, findings};

/// Of the room, what the items of each kind may have where all of them need it; and the sum.
const FACTS: u64 = 5;
const DECISIONS: u64 = 3;
const TASKS: u64 = 3;
const CONFLICTS: u64 = 2;
const FILES: u64 = 2;
const TOPICS: u64 = 1;
const ALL: u64 = FACTS + DECISIONS + TASKS + CONFLICTS + FILES + TOPICS;

impl Plan {
    /// What rules find in the messages that leave, beside what earlier compactions found, and a summary of all that have left, in the
    /// conversation's own words. Deterministic. `fallback`: why no model did this, where there is one.
    #[must_use]
    pub fn by_rules(&self, record: &[Stored], set: &WorkingSet, fallback: Option<String>) -> Compaction {
        let found = findings(&record[self.from..self.upto], set, MOST);
        let mut after = set.clone();
        Found::from(found).add_to(&mut after);
        after.summary = in_own_words(&record[..self.upto]);
        let dropped = fit(&mut after, self.room);
        let receipt = Receipt { source: Some(ItemSource::Rule), fallback, dropped, ..self.receipt(record, &after) };
        Compaction { upto: self.upto as u64, derived: Derived::of(&after), receipt }
    }

    /// What a model has written down of the messages that leave, beside what earlier compactions found. `fallback`: why not of all.
    ///
    /// # Errors
    /// Why it is not taken, to be read after "the model's answer".
    pub fn by_model(&self, record: &[Stored], set: &WorkingSet, notes: Notes) -> Result<Compaction, Unusable> {
        let Notes { found, fallback } = notes;
        worth_keeping(&found, &record[self.from..self.upto])?;
        let offered = found.facts.iter().map(|fact| fact.text.clone()).collect();
        let told = found.summary.is_some();
        let mut after = set.clone();
        let closed = |task: &&Item| task.source != ItemSource::Hand && found.done.contains(&task.id);
        let done = set.open_tasks.iter().filter(closed).map(|task| task.text.clone()).collect();
        found.add_to(&mut after);
        if !told {
            after.summary = in_own_words(&record[..self.upto]);
        }
        let dropped = fit(&mut after, self.room);
        let receipt = Receipt {
            source: Some(ItemSource::Model),
            fallback,
            offered,
            done,
            dropped,
            ..self.receipt(record, &after)
        };
        Ok(Compaction { upto: self.upto as u64, derived: Derived::of(&after), receipt })
    }

    fn receipt(&self, record: &[Stored], after: &WorkingSet) -> Receipt {
        let id =
            |index: usize| record.get(index).and_then(|message| message.to_message().ok()).map(|message| message.id);
        Receipt {
            tokens_before: self.before,
            tokens_after: tokens(&record[self.upto..], &block::bounded(after, self.limit)),
            left: (self.upto - self.from) as u64,
            kept: (record.len() - self.upto) as u64,
            from: id(self.from),
            to: id(self.upto - 1),
            pins: after.pinned_facts.iter().map(|fact| fact.text.clone()).collect(),
            ..Receipt::default()
        }
    }
}

/// Whether what was found of messages says something, and less than they do.
///
/// # Errors
/// Why it is not taken.
pub fn worth_keeping(found: &Found, messages: &[Stored]) -> Result<(), Unusable> {
    if found.is_empty() {
        return Err("says nothing");
    }
    let said = Totals::of(messages).chars;
    if found.chars() >= said { Err("is longer than the conversation") } else { Ok(()) }
}

fn in_own_words(left: &[Stored]) -> Option<String> {
    let mut digest = Digest::new();
    for index in Digest::indices(left.len()) {
        if let Ok(message) = left[index].to_message() {
            digest.push(&message);
        }
    }
    summary::extract(&digest).summary
}

/// What no compaction changes.
pub(super) fn by_hand(set: &WorkingSet) -> WorkingSet {
    let mut set = set.clone();
    Derived::default().put_into(&mut set);
    set
}

/// Lets the oldest items go that no hand has put there, until what compactions put into the working set has no more than `limit` tokens;
/// how many go. Each kind has its share: what one does not need is for the others, and only of those that have more does
/// something go. What people put into it stays, and takes no room from the others.
fn fit(set: &mut WorkingSet, limit: u64) -> u64 {
    let by_hand = block::chars(&by_hand(set));
    let mut chars = block::chars(set).saturating_sub(by_hand);
    let mut lists = [
        (&mut set.facts, FACTS),
        (&mut set.decisions, DECISIONS),
        (&mut set.open_tasks, TASKS),
        (&mut set.conflicts, CONFLICTS),
        (&mut set.files_touched, FILES),
        (&mut set.topics, TOPICS),
    ]
    .map(|(list, share)| Shared::new(list, share));
    while chars > limit.saturating_mul(4) {
        let most =
            lists.iter_mut().filter(|list| list.oldest().is_some()).max_by_key(|list| list.chars * ALL / list.share);
        let Some(list) = most else { break };
        chars = chars.saturating_sub(list.let_go());
    }
    let dropped = lists.into_iter().map(Shared::end).sum();
    set.token_budget = TokenBudget { used: block::chars(set) / 4, limit: limit + by_hand.div_ceil(4) };
    dropped
}

/// A list of which the oldest items may go.
struct Shared<'a> {
    list: &'a mut Vec<Item>,
    share: u64,
    /// Of the items that are left.
    chars: u64,
    /// What stands before it goes, but for what people put there.
    upto: usize,
}

impl<'a> Shared<'a> {
    fn new(list: &'a mut Vec<Item>, share: u64) -> Self {
        let chars = list.iter().map(chars_of).sum();
        Self { list, share, chars, upto: 0 }
    }

    /// The oldest item that may go.
    fn oldest(&self) -> Option<usize> {
        (self.upto..self.list.len()).find(|at| self.list[*at].source != ItemSource::Hand)
    }

    /// Lets it go; its characters.
    fn let_go(&mut self) -> u64 {
        let Some(at) = self.oldest() else { return 0 };
        let chars = chars_of(&self.list[at]);
        self.upto = at + 1;
        self.chars = self.chars.saturating_sub(chars);
        chars
    }

    /// How many go.
    fn end(self) -> u64 {
        let before = self.list.len();
        let mut at = 0;
        self.list.retain(|item| {
            at += 1;
            at > self.upto || item.source == ItemSource::Hand
        });
        (before - self.list.len()) as u64
    }
}

/// As the block shows it.
fn chars_of(item: &Item) -> u64 {
    item.text.chars().count() as u64 + 3
}
