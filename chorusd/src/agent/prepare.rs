//! What the next call of a model sends: the one place where it is decided, for the call itself and for whoever asks to see it.

use super::compaction::{Plan, plan};
use super::effect::CallModel;
use super::meter;
use super::prompt::{Prompt, fits, prompt};
use crate::tools;

/// What is done next.
#[derive(Debug)]
pub enum Prepared {
    /// This is asked.
    Prompt(Box<Prompt>),
    /// The window is compacted first.
    Compacts(Plan),
}

/// Decides it. `remembered`: what the agent remembers, as it is shown. `takes`: the tokens that the model takes in all, where that is
/// known. Blocks: it reads docs/.
#[must_use]
pub fn prepare(call: &CallModel, remembered: Option<String>, takes: Option<u64>) -> Prepared {
    let (record, set) = (&call.messages[..], &call.working_set);
    let fixed = meter::fixed(&call.facts, remembered.as_deref());
    let limit = fits(&call.facts, takes, fixed + tools::tokens(call.facts.rules()));
    if let Some(plan) = plan(record, (call.view, call.opened), set, limit, call.wish) {
        return Prepared::Compacts(plan);
    }
    let view = call.view.min(record.len());
    let mut asked = prompt(&call.facts, remembered, &record[view..], set, takes, call.tight);
    asked.left_out += view;
    if let Some(word) = call.last_word {
        asked.last_word(word);
    }
    Prepared::Prompt(Box::new(asked))
}
