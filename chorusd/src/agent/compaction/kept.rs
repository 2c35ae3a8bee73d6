//! What is kept of the messages that leave.

use chorus_proto::{ItemSource, Receipt, TokenBudget, WorkingSet};

use super::{Compaction, Derived, Plan, tokens};
use crate::agent::window::block;
use crate::message::{Stored, Totals};
use crate::summary::{self, Digest, Found, MOST, Unusable, findings};

impl Plan {
    /// What rules find in the messages that leave, beside what earlier compactions found, and a summary of all that have left, in the
    /// conversation's own words. Deterministic. `fallback`: why no model did this, where there is one.
    #[must_use]
    pub fn by_rules(&self, record: &[Stored], set: &WorkingSet, fallback: Option<String>) -> Compaction {
        let leaving = record[self.from..self.upto].iter().filter_map(|message| message.to_message().ok());
        let found = findings(leaving, set, MOST);
        let mut after = set.clone();
        after.decisions.extend(found.decisions);
        after.open_tasks.extend(found.open_tasks);
        after.files_touched.extend(found.files_touched);
        after.summary = in_own_words(&record[..self.upto]);
        fit(&mut after, self.room);
        let receipt = Receipt { source: Some(ItemSource::Rule), fallback, ..self.receipt(record, &after) };
        Compaction { upto: self.upto as u64, derived: Derived::of(&after), receipt }
    }

    /// What a model has written down of the messages that leave, beside what earlier compactions found.
    ///
    /// # Errors
    /// Why it is not taken, to be read after "the model's answer".
    pub fn by_model(&self, record: &[Stored], set: &WorkingSet, found: Found) -> Result<Compaction, Unusable> {
        worth_keeping(&found, &record[self.from..self.upto])?;
        let offered = found.facts.iter().map(|fact| fact.text.clone()).collect();
        let told = found.summary.is_some();
        let mut after = set.clone();
        found.add_to(&mut after);
        if !told {
            after.summary = in_own_words(&record[..self.upto]);
        }
        fit(&mut after, self.room);
        if after.pinned_facts != set.pinned_facts || !set.open_tasks.iter().all(|task| after.open_tasks.contains(task))
        {
            return Err("leaves no room for what is open");
        }
        let receipt = Receipt { source: Some(ItemSource::Model), offered, ..self.receipt(record, &after) };
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

/// Lets the oldest items go that no hand has put there, until what compactions put into the working set has no more than `limit` tokens.
/// What people put into it stays, and takes no room from the others.
fn fit(set: &mut WorkingSet, limit: u64) {
    let by_hand = block::chars(&by_hand(set));
    let mut chars = block::chars(set).saturating_sub(by_hand);
    let lists = [
        &mut set.files_touched,
        &mut set.topics,
        &mut set.decisions,
        &mut set.facts,
        &mut set.conflicts,
        &mut set.open_tasks,
    ];
    for list in lists {
        list.retain(|item| {
            let goes = chars > limit.saturating_mul(4) && item.source != ItemSource::Hand;
            if goes {
                chars = chars.saturating_sub(item.text.chars().count() as u64 + 3);
            }
            !goes
        });
    }
    set.token_budget = TokenBudget { used: block::chars(set) / 4, limit: limit + by_hand.div_ceil(4) };
}
