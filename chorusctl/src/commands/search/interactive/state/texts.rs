//! The lines about the results, and the question before a step.

use super::super::super::hit::session_name;
use super::super::super::no_match_line;
use super::{Note, Question, State, Step};
use crate::ui::units::pluralize;

impl State {
    /// Returns the question that the last line asks.
    pub(in super::super) fn question(&self) -> Option<String> {
        let Question { step, hit, unsaved } = self.question.as_ref()?;
        let from = session_name(hit);
        let what = match (step, hit.message) {
            (Step::Restore, Some(number)) => format!("restore {from} up to message {number}"),
            (Step::Restore, None) => format!("restore {from}"),
            (Step::Branch, Some(number)) => format!("branch from {from} at message {number}"),
            (Step::Branch, None) => format!("branch from {from}"),
        };
        let unsaved = pluralize(*unsaved, "unsaved message");
        Some(format!("{unsaved} will be saved first; {what}? [y/N]"))
    }

    /// Returns the line about the results.
    pub(in super::super) fn status(&self) -> Note {
        let plain = |text: String| Note { text, is_error: false };
        if let Some(note) = &self.note {
            return note.clone();
        }
        let Some(query) = self.query.query() else {
            let is_empty = self.query.text().trim().is_empty();
            return plain(if is_empty { "type words to find" } else { "add a word to find" }.to_owned());
        };
        if self.found != Some(query) {
            return plain("searching …".to_owned());
        }
        if self.failure.is_some() {
            return plain(String::new());
        }
        let number = u64::try_from(self.hits.len()).unwrap_or(u64::MAX);
        let found = match number {
            0 => no_match_line(self.is_filtered, self.search.all_agents),
            _ if Some(number) == self.search.limit => format!("the best {}", pluralize(number, "result")),
            _ => pluralize(number, "result"),
        };
        plain(match &self.warning {
            // What to try comes after the reason why there may be nothing.
            Some(warning) if number == 0 => format!("{warning} · {found}"),
            Some(warning) => format!("{found} · {warning}"),
            None => found,
        })
    }
}
