//! Where a window begins.

use chorus_proto::Role;

use super::Budget;
use crate::message::Stored;

/// What has been taken so far, counted from the end.
#[derive(Clone, Copy)]
struct Spent {
    messages: usize,
    tokens: u64,
}

impl Spent {
    fn with(self, messages: &[Stored]) -> Self {
        let tokens = messages.iter().map(Stored::tokens).sum::<u64>();
        Self { messages: self.messages + messages.len(), tokens: self.tokens + tokens }
    }

    fn fits(self, budget: Budget) -> bool {
        self.messages <= budget.messages && self.tokens <= budget.tokens
    }
}

/// Indices of the messages to show, in order: whole turns from the end as far as the budget goes. Where the newest turn
/// alone is too much, its first message and as much of its end as fits, but at least its last call with its results.
pub fn cut(record: &[Stored], budget: Budget) -> Vec<usize> {
    let mut spent = Spent { messages: 0, tokens: 0 };
    let (mut begin, mut turn) = (record.len(), record.len());
    while let Some(start) = turn_before(record, turn) {
        spent = spent.with(&record[start..turn]);
        if !spent.fits(budget) {
            break;
        }
        (begin, turn) = (start, start);
    }
    if begin < record.len() || record.is_empty() {
        return (begin..record.len()).collect();
    }
    let first = turn_before(record, turn).unwrap_or(0);
    std::iter::once(first).chain(end_of_turn(record, first, budget)..record.len()).collect()
}

/// The beginning of the turn that ends before `end`: its user message, or the beginning of everything.
fn turn_before(record: &[Stored], end: usize) -> Option<usize> {
    let user = record[..end].iter().rposition(|message| message.role() == Role::User);
    (end > 0).then(|| user.unwrap_or(0))
}

/// Where the part of a turn begins that is shown behind its first message, which is counted too.
fn end_of_turn(record: &[Stored], first: usize, budget: Budget) -> usize {
    let mut spent = Spent { messages: 0, tokens: 0 }.with(&record[first..=first]);
    let mut begin = record.len();
    while begin > first + 1 {
        let start = exchange_before(record, begin).max(first + 1);
        spent = spent.with(&record[start..begin]);
        if !spent.fits(budget) && begin < record.len() {
            break;
        }
        begin = start;
    }
    begin
}

/// The beginning of what belongs together before `end`: a message that made calls with their results, or one message.
fn exchange_before(record: &[Stored], end: usize) -> usize {
    let calls = record[..end].iter().rposition(|message| message.role() != Role::ToolResult);
    match calls {
        Some(index) if index + 1 == end || record[index].role() == Role::Assistant => index,
        Some(index) => index + 1,
        None => 0,
    }
}
