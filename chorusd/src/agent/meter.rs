//! How long the next request of a context would be: measured from what the pieces of it are, without putting it together.

use std::path::Path;

use super::Facts;
use super::context::Context;
use super::notes::notes;
use super::prompt::DOCS;
use super::window::{self, Budget, block};
use crate::estimate::{self, piece};
use crate::message::{ContextNo, Totals};

/// What the next request would show of a conversation, measured when it changed.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    of: (ContextNo, Totals, Budget),
    /// The first message that no compaction took out.
    view: usize,
    messages: u64,
    /// Of the working set.
    set: u64,
}

impl Shown {
    /// Measures `context`; what was measured `before` is taken as far as it holds still.
    #[must_use]
    pub fn of(context: &Context, budget: Budget, before: Option<Self>) -> Self {
        let of = (context.no, context.totals, budget);
        let view = context.view();
        let messages = before
            .filter(|before| before.of == of && before.view == view)
            .map_or_else(|| window::tokens(&context.messages[view..], budget), |before| before.messages);
        let set = block::tokens(&block::bounded(&context.working_set, budget.tokens));
        Self { of, view, messages, set }
    }

    /// Tokens, as they were estimated; `None` where the budget was another.
    #[must_use]
    pub fn tokens(self, budget: Budget) -> Option<u64> {
        (self.of.2 == budget).then_some(self.messages + self.set)
    }
}

/// The same of a context that nobody has touched since the start, of which there are only the totals: all messages are taken to be
/// of one length.
#[must_use]
pub fn guess(totals: Totals, budget: Budget) -> u64 {
    let shown = totals.messages.min(budget.messages as u64);
    let all = totals.tokens().saturating_add(totals.messages.saturating_mul(estimate::MESSAGE));
    all.checked_mul(shown).map_or(all, |product| product / totals.messages.max(1)).min(budget.tokens)
}

/// Tokens of the agent's prompt and notes, and of what it remembers as it is shown. Blocks: docs/ is listed.
#[must_use]
pub fn fixed(facts: &Facts, remembered: Option<&str>) -> u64 {
    let of = |text: &str| piece(text.len() as u64);
    facts.system_prompt.as_deref().map_or(0, of) + remembered.map_or(0, of) + noted(&facts.dir.join("docs"))
}

/// The notes in docs/ as far as they are shown, by their sizes.
fn noted(dir: &Path) -> u64 {
    let notes = notes(dir);
    let mut length = 0_u64;
    for note in &notes {
        let name = note.name.len() as u64;
        let whole = note.size.saturating_add(name + 8);
        length += if length.saturating_add(whole) <= DOCS as u64 { whole } else { name + 2 };
    }
    if notes.is_empty() { 0 } else { piece(length) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const BUDGET: Budget = Budget { messages: 50, tokens: 15_000 };

    fn totals(messages: u64, chars: u64) -> Totals {
        Totals { messages, queries: 0, chars }
    }

    #[test]
    fn a_guess_is_never_more_than_the_budget() {
        assert_eq!(guess(totals(0, 0), BUDGET), 0);
        assert_eq!(guess(totals(10, 4000), BUDGET), 1080);
        assert_eq!(guess(totals(100, 40_000), BUDGET), 5400, "half of the messages");
        assert_eq!(guess(totals(10, 4_000_000), BUDGET), 15_000);
        assert_eq!(guess(totals(u64::MAX, u64::MAX), BUDGET), 15_000);
    }

    #[test]
    fn notes_are_measured_as_they_are_shown() {
        let dir = tempfile::tempdir().unwrap();
        let docs = dir.path().join("docs");
        let facts = Facts { dir: dir.path().to_owned(), ..Facts::default() };
        assert_eq!(fixed(&facts, None), 0);
        fs::create_dir(&docs).unwrap();
        assert_eq!(fixed(&facts, None), 0);
        fs::write(docs.join("a.md"), "x".repeat(4000)).unwrap();
        let one = fixed(&facts, None);
        assert!((1000..1020).contains(&one), "{one}");
        fs::write(docs.join("b.md"), "x".repeat(DOCS)).unwrap();
        assert!((one..one + 10).contains(&fixed(&facts, None)), "named only");
        let prompted = Facts { system_prompt: Some("x".repeat(400)), ..facts };
        assert!(fixed(&prompted, None) > one + 100);
    }
}
