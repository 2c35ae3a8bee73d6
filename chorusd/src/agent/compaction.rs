//! Compaction in place: older messages leave the window for the working set. It is a view: the record stays, and an undo shows the
//! messages again. What is kept of them is made from the messages themselves, never from an earlier summary.

use chorus_proto::{Item, ItemSource, Receipt, Role, TokenBudget, WorkingSet};
use serde::{Deserialize, Serialize};

use super::window::block;
use crate::message::Stored;
use crate::summary::{self, Digest, MOST, findings};

/// The newest messages that stay in the window, where they leave room for more.
pub const KEPT: usize = 20;

/// Of the tokens that the window may have, what the working set may take of them.
const SHARE: u64 = 4;

/// What one compaction did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// The window begins with the message of this number from then on, counted from 0.
    pub upto: u64,
    /// The working set from then on, but for what people put into it.
    pub derived: Derived,
    pub receipt: Receipt,
}

/// The part of a working set that is made from messages. Pins and the background are not in it: no compaction changes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Derived {
    pub summary: Option<String>,
    pub topics: Vec<Item>,
    pub decisions: Vec<Item>,
    pub open_tasks: Vec<Item>,
    pub files_touched: Vec<Item>,
    pub conflicts: Vec<Item>,
    pub token_budget: TokenBudget,
}

/// A compaction that holds, and what the working set was before it.
#[derive(Debug, Clone)]
pub struct Done {
    pub compaction: Compaction,
    pub before: Derived,
}

/// When a window is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// When it has more tokens than it may.
    IfLong,
    /// Now: the model takes less than was thought.
    Now,
    /// Not in this call.
    No,
}

impl Derived {
    /// That of a working set.
    #[must_use]
    pub fn of(set: &WorkingSet) -> Self {
        let WorkingSet { summary, topics, decisions, open_tasks, files_touched, conflicts, token_budget, .. } =
            set.clone();
        Self { summary, topics, decisions, open_tasks, files_touched, conflicts, token_budget }
    }

    /// Takes its place in a working set.
    pub fn put_into(self, set: &mut WorkingSet) {
        let Self { summary, topics, decisions, open_tasks, files_touched, conflicts, token_budget } = self;
        let (background, pinned_facts) = (set.background.take(), std::mem::take(&mut set.pinned_facts));
        *set = WorkingSet {
            background,
            summary,
            topics,
            pinned_facts,
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
pub fn tokens(messages: &[Stored], set: &WorkingSet) -> u64 {
    messages.iter().map(Stored::tokens).sum::<u64>() + block::tokens(set)
}

/// The compaction of a window that begins with the message `from` and may have `limit` tokens; `None` where it is not wished for or
/// no turn can leave. The message `opened` stays, which began the turn that runs. Deterministic. A model's own extraction, where there is one, takes the place of [`extracted`].
#[must_use]
pub fn compaction(
    record: &[Stored],
    (from, opened): (usize, usize),
    set: &WorkingSet,
    limit: u64,
    wish: Wish,
) -> Option<Compaction> {
    let from = from.min(record.len());
    let shown = |set: &WorkingSet| block::tokens(&block::bounded(set, limit));
    let before = tokens(&record[from..], &block::bounded(set, limit));
    // What no compaction makes shorter takes its room from the others, but not more than half.
    let by_hand = shown(&by_hand(set));
    let limit_of_rest = limit.saturating_sub(by_hand).max(limit / 2);
    let room = match wish {
        Wish::No => return None,
        Wish::IfLong if before.saturating_sub(by_hand) <= limit_of_rest => return None,
        // Not again after the next message.
        Wish::IfLong => limit_of_rest / 2,
        // However short it seems: it is too long.
        Wish::Now => (limit / 4).min(before / 2),
    };
    let upto = border(record, (from, opened), room)?;
    let mut after = set.clone();
    extracted(record, from, upto, set).put_into(&mut after);
    fit(&mut after, if wish == Wish::Now { room } else { limit_of_rest } / SHARE);
    let id = |index: usize| record.get(index).and_then(|message| message.to_message().ok()).map(|message| message.id);
    let receipt = Receipt {
        tokens_before: before,
        tokens_after: tokens(&record[upto..], &block::bounded(&after, limit)),
        left: (upto - from) as u64,
        kept: (record.len() - upto) as u64,
        from: id(from),
        to: id(upto - 1),
        pins: set.pinned_facts.iter().map(|fact| fact.text.clone()).collect(),
    };
    Some(Compaction { upto: upto as u64, derived: Derived::of(&after), receipt })
}

/// Where the window begins afterwards: with a turn, so that the last [`KEPT`] messages stay and have no more than `room` tokens; where
/// they have more, with a later turn, at the latest the newest, and never behind the message `opened`.
#[must_use]
pub fn border(record: &[Stored], (from, opened): (usize, usize), room: u64) -> Option<usize> {
    let mut tokens = 0;
    let mut chosen = None;
    for index in (from + 1..record.len()).rev() {
        tokens += record[index].tokens();
        if record[index].role() != Role::User || index > opened {
            continue;
        }
        if chosen.is_some() && tokens > room {
            break;
        }
        chosen = Some(index);
        if record.len() - index >= KEPT {
            break;
        }
    }
    chosen
}

/// What rules find in the messages that leave, beside what earlier compactions found; and a summary of all that have left, in the
/// conversation's own words.
fn extracted(record: &[Stored], from: usize, upto: usize, set: &WorkingSet) -> Derived {
    let leaving = record[from..upto].iter().filter_map(|message| message.to_message().ok());
    let found = findings(leaving, set, MOST);
    let mut derived = Derived::of(set);
    derived.decisions.extend(found.decisions);
    derived.open_tasks.extend(found.open_tasks);
    derived.files_touched.extend(found.files_touched);
    let mut digest = Digest::new();
    for index in Digest::indices(upto) {
        if let Ok(message) = record[index].to_message() {
            digest.push(&message);
        }
    }
    derived.summary = summary::extract(&digest).summary;
    derived
}

/// What no compaction changes.
fn by_hand(set: &WorkingSet) -> WorkingSet {
    let mut set = set.clone();
    Derived::default().put_into(&mut set);
    set
}

/// Lets the oldest items go that rules have found, until what compactions put into the working set has no more than `limit` tokens.
/// What people put into it stays, and takes no room from the others.
fn fit(set: &mut WorkingSet, limit: u64) {
    let by_hand = block::chars(&by_hand(set));
    let mut chars = block::chars(set).saturating_sub(by_hand);
    let lists = [&mut set.files_touched, &mut set.topics, &mut set.decisions, &mut set.conflicts, &mut set.open_tasks];
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

#[cfg(test)]
mod tests {
    use chorus_proto::NewMessage;

    use super::*;

    /// No turn runs that began before.
    const LAST: usize = usize::MAX;

    fn stored(role: Role, text: &str) -> Stored {
        let mut id = 0;
        let next = || {
            id += 1;
            format!("{}-{id}", text.get(..8).unwrap_or(text))
        };
        Stored::new(&NewMessage::text(role, text).complete(next, jiff::Timestamp::UNIX_EPOCH)).unwrap()
    }

    fn talk(turns: usize, chars: usize) -> Vec<Stored> {
        let turn = |n: usize| {
            let text = format!("question {n}: we decided on plan {n} {}", "x".repeat(chars));
            [stored(Role::User, &text), stored(Role::Assistant, &"y".repeat(chars))]
        };
        (0..turns).flat_map(turn).collect()
    }

    #[test]
    fn the_last_twenty_stay_and_more_of_their_first_turn() {
        let record = talk(30, 10);
        assert_eq!(border(&record, (0, LAST), 10_000), Some(40));
        let mut odd = record.clone();
        odd.insert(45, stored(Role::Assistant, "and"));
        assert_eq!(border(&odd, (0, LAST), 10_000), Some(40));
        // Of large ones fewer stay; of the newest turn all.
        assert_eq!(border(&talk(30, 4000), (0, LAST), 5000), Some(56));
        assert_eq!(border(&talk(30, 4000), (0, LAST), 1), Some(58));
        // What has left is not looked at again, and a single turn cannot be parted.
        assert_eq!(border(&record, (40, LAST), 10_000), Some(42));
        assert_eq!(border(&record, (58, LAST), 10_000), None);
        assert_eq!(border(&[], (0, LAST), 10_000), None);
        assert_eq!(border(&talk(1, 10)[..1], (0, LAST), 0), None);
    }

    #[test]
    fn the_message_that_opened_the_turn_stays() {
        let record = talk(30, 4000);
        assert_eq!(border(&record, (0, LAST), 5000), Some(56));
        assert_eq!(border(&record, (0, 50), 5000), Some(50));
        assert_eq!(border(&record, (0, 0), 5000), None);
        assert_eq!(compaction(&record, (50, 50), &WorkingSet::default(), 5000, Wish::Now), None);
    }

    #[test]
    fn large_pins_do_not_have_the_window_compacted_with_each_message() {
        let text = "z".repeat(12_000);
        let pin = Item { id: "1".into(), text, source: ItemSource::Hand, message_id: None };
        let set = WorkingSet { pinned_facts: vec![pin], ..WorkingSet::default() };
        // Pins alone are more than the limit.
        assert_eq!(compaction(&talk(4, 100), (0, LAST), &set, 2000, Wish::IfLong), None);
        let mut after = set.clone();
        let record = talk(30, 400);
        let done = compaction(&record, (0, LAST), &set, 2000, Wish::IfLong).unwrap();
        let from = usize::try_from(done.upto).unwrap();
        done.derived.put_into(&mut after);
        let next = [&record[..], &talk(1, 100)].concat();
        assert_eq!(compaction(&next, (from, LAST), &after, 2000, Wish::IfLong), None);
    }

    #[test]
    fn below_its_limit_a_window_stays_and_above_it_the_oldest_leave() {
        let (record, set) = (talk(30, 400), WorkingSet::default());
        assert_eq!(compaction(&record, (0, LAST), &set, 10_000, Wish::IfLong), None);
        assert_eq!(compaction(&record, (0, LAST), &set, 1000, Wish::No), None);
        let done = compaction(&record, (0, LAST), &set, 6000, Wish::IfLong).unwrap();
        assert_eq!((done.upto, done.receipt.left, done.receipt.kept), (40, 40, 20));
        assert!(done.receipt.tokens_after < done.receipt.tokens_before / 2 && done.receipt.tokens_after < 6000);
        assert_eq!(done.derived.decisions.len(), 10);
        assert!(done.derived.summary.is_some());
        assert_eq!(compaction(&record, (0, LAST), &set, 6000, Wish::IfLong), Some(done), "the same every time");
        let now = compaction(&record, (0, LAST), &set, 1_000_000, Wish::Now).unwrap();
        assert!(now.receipt.tokens_after < now.receipt.tokens_before / 2);
    }

    #[test]
    fn whatever_goes_for_want_of_room_no_pin_does() {
        let pin = |n: u64| Item {
            id: n.to_string(),
            text: format!("fact {n} {}", "z".repeat(400)),
            source: ItemSource::Hand,
            message_id: None,
        };
        let mut set = WorkingSet { pinned_facts: (0..20).map(pin).collect(), ..WorkingSet::default() };
        let pins = set.pinned_facts.clone();
        let record = talk(200, 200);
        let mut from = 0;
        for upto in [100, 200, 300, 400] {
            let done = compaction(&record[..upto], (from, LAST), &set, 2000, Wish::IfLong).unwrap();
            from = usize::try_from(done.upto).unwrap();
            assert_eq!(done.receipt.pins.len(), pins.len());
            done.derived.put_into(&mut set);
            assert_eq!(set.pinned_facts, pins);
            assert!(!set.decisions.is_empty() && set.decisions.len() < 20, "{}", set.decisions.len());
            assert!(set.token_budget.used <= set.token_budget.limit, "{:?}", set.token_budget);
        }
    }
}
