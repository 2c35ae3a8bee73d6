//! The size of a context's next prompt, measured from its pieces without building it.

use std::path::Path;

use chorus_agent_core::context::Context;
use chorus_agent_core::window::{WindowBudget, working_set_block};
use chorus_agent_core::{AgentSettings, window};
use chorus_session::stored_message::{ContextNo, Totals};
use chorus_session::token_estimate;
use chorus_session::token_estimate::{tokens_of_piece, tokens_of_unread_piece};

use super::docs_listing::list_docs;
use super::prompt::MAX_DOCS_BYTES;

/// Tokens of the conversation in the next request, measured whenever it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationSize {
    key: (ContextNo, Totals, WindowBudget),
    /// Index of the first message that no compaction removed.
    window_start: usize,
    message_tokens: u64,
    /// [`Context::set_revision`] of the working set that was measured.
    set_revision: u64,
    /// Tokens of the working set.
    working_set_tokens: u64,
}

impl ConversationSize {
    /// Measures `context`, reusing what still holds of the measurement `before`.
    #[must_use]
    pub fn measure(context: &Context, budget: WindowBudget, before: Option<Self>) -> Self {
        let key = (context.number, context.totals, budget);
        let window_start = context.window_start();
        let message_tokens = before
            .filter(|before| before.key == key && before.window_start == window_start)
            .map_or_else(|| window::tokens(&context.messages[window_start..], budget), |before| before.message_tokens);
        let set_revision = context.set_revision;
        let same_set =
            |before: &Self| (before.key.0, before.key.2, before.set_revision) == (context.number, budget, set_revision);
        let working_set_tokens = before.filter(same_set).map_or_else(
            || working_set_block::tokens(&working_set_block::fit_to_window(&context.working_set, budget.tokens)),
            |before| before.working_set_tokens,
        );
        Self { key, window_start, message_tokens, set_revision, working_set_tokens }
    }

    /// Returns the estimated tokens, or `None` if they were measured for another budget.
    #[must_use]
    pub fn tokens(self, budget: WindowBudget) -> Option<u64> {
        (self.key.2 == budget).then_some(self.message_tokens + self.working_set_tokens)
    }
}

/// Estimates the same from the totals alone, for a context that was not loaded since the start. Assumes that all
/// messages have the same length.
#[must_use]
pub fn guess_tokens(totals: Totals, budget: WindowBudget) -> u64 {
    let shown = totals.messages.min(budget.messages as u64);
    let all = totals.tokens().saturating_add(totals.messages.saturating_mul(token_estimate::MESSAGE_OVERHEAD));
    all.checked_mul(shown).map_or(all, |product| product / totals.messages.max(1)).min(budget.tokens)
}

/// Returns the tokens of the system prompt, the docs and the memory block. Blocks, since it lists docs/.
#[must_use]
pub fn fixed_tokens(settings: &AgentSettings, remembered: Option<&str>) -> u64 {
    settings.system_prompt.as_deref().map_or(0, tokens_of_piece)
        + remembered.map_or(0, tokens_of_piece)
        + docs_tokens(&settings.dir.join("docs"))
}

/// Returns the tokens of the docs section, computed from the sizes of the files.
fn docs_tokens(dir: &Path) -> u64 {
    let notes = list_docs(dir);
    let mut length = 0_u64;
    for note in &notes {
        let name = note.name.len() as u64;
        let whole = note.size.saturating_add(name + 8);
        length += if length.saturating_add(whole) <= MAX_DOCS_BYTES as u64 { whole } else { name + 2 };
    }
    if notes.is_empty() { 0 } else { tokens_of_unread_piece(length) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const BUDGET: WindowBudget = WindowBudget { messages: 50, tokens: 15_000 };

    fn totals(messages: u64, chars: u64) -> Totals {
        Totals { messages, queries: 0, chars }
    }

    #[test]
    fn a_guess_is_never_more_than_the_budget() {
        assert_eq!(guess_tokens(totals(0, 0), BUDGET), 0);
        assert_eq!(guess_tokens(totals(10, 4000), BUDGET), 1080);
        assert_eq!(guess_tokens(totals(100, 40_000), BUDGET), 5400, "half of the messages");
        assert_eq!(guess_tokens(totals(10, 4_000_000), BUDGET), 15_000);
        assert_eq!(guess_tokens(totals(u64::MAX, u64::MAX), BUDGET), 15_000);
    }

    #[test]
    fn notes_are_measured_as_they_are_shown() {
        let dir = tempfile::tempdir().unwrap();
        let docs = dir.path().join("docs");
        let settings = AgentSettings { dir: dir.path().to_owned(), ..AgentSettings::default() };
        assert_eq!(fixed_tokens(&settings, None), 0);
        fs::create_dir(&docs).unwrap();
        assert_eq!(fixed_tokens(&settings, None), 0);
        fs::write(docs.join("a.md"), "x".repeat(4000)).unwrap();
        let one = fixed_tokens(&settings, None);
        assert!((1000..1020).contains(&one), "{one}");
        fs::write(docs.join("b.md"), "x".repeat(MAX_DOCS_BYTES)).unwrap();
        assert!((one..one + 10).contains(&fixed_tokens(&settings, None)), "named only");
        let prompted = AgentSettings { system_prompt: Some("x".repeat(400)), ..settings };
        assert!(fixed_tokens(&prompted, None) > one + 100);
    }
}
