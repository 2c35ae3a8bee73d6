//! Selects the messages of a window.

use chorus_proto::Role;
use chorus_session::stored_message::StoredMessage;

use super::WindowBudget;

/// Messages and tokens selected so far, counted from the end.
#[derive(Clone, Copy)]
struct BudgetUse {
    messages: usize,
    tokens: u64,
}

impl BudgetUse {
    fn plus(self, messages: &[StoredMessage]) -> Self {
        let tokens = messages.iter().map(StoredMessage::tokens).sum::<u64>();
        Self { messages: self.messages + messages.len(), tokens: self.tokens + tokens }
    }

    fn fits(self, budget: WindowBudget) -> bool {
        self.messages <= budget.messages && self.tokens <= budget.tokens
    }
}

/// Returns the indices of the messages in the window, in order: whole turns from the end as far as the budget allows.
/// If the newest turn alone exceeds it, its first message and as much of its end as fits, but at least its last tool
/// calls with their results.
pub(super) fn select_messages(record: &[StoredMessage], budget: WindowBudget) -> Vec<usize> {
    let mut spent = BudgetUse { messages: 0, tokens: 0 };
    let (mut begin, mut turn) = (record.len(), record.len());
    while let Some(start) = turn_start_before(record, turn) {
        spent = spent.plus(&record[start..turn]);
        if !spent.fits(budget) {
            break;
        }
        (begin, turn) = (start, start);
    }
    if begin < record.len() || record.is_empty() {
        return (begin..record.len()).collect();
    }
    let first = turn_start_before(record, turn).unwrap_or(0);
    std::iter::once(first).chain(turn_tail_start(record, first, budget)..record.len()).collect()
}

/// Returns the start of the turn that ends before `end`: its user message, or the start of the conversation.
fn turn_start_before(record: &[StoredMessage], end: usize) -> Option<usize> {
    let user = record[..end].iter().rposition(|message| message.role() == Role::User);
    (end > 0).then(|| user.unwrap_or(0))
}

/// Returns where the tail of a turn starts that fits the budget together with the turn's first message.
fn turn_tail_start(record: &[StoredMessage], first: usize, budget: WindowBudget) -> usize {
    let mut spent = BudgetUse { messages: 0, tokens: 0 }.plus(&record[first..=first]);
    let mut begin = record.len();
    while begin > first + 1 {
        let start = exchange_start_before(record, begin).max(first + 1);
        spent = spent.plus(&record[start..begin]);
        if !spent.fits(budget) && begin < record.len() {
            break;
        }
        begin = start;
    }
    begin
}

/// Returns the start of the unit that ends before `end`: a message with tool calls and their results, or one message.
fn exchange_start_before(record: &[StoredMessage], end: usize) -> usize {
    let calls = record[..end].iter().rposition(|message| message.role() != Role::ToolResult);
    match calls {
        Some(index) if index + 1 == end || record[index].role() == Role::Assistant => index,
        Some(index) => index + 1,
        None => 0,
    }
}
