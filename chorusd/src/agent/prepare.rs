//! What the next call of a model sends: the one place where it is decided, for the call itself and for whoever asks to see it.

use super::accepts::Accepts;
use super::compaction::{Plan, plan};
use super::effect::CallModel;
use super::meter;
use super::prompt::{Prompt, fits, prompt, room_for_tools};
use crate::tools;

/// What is done next.
#[derive(Debug)]
pub enum Prepared {
    /// This is asked.
    Prompt(Box<Prompt>),
    /// The window is compacted first.
    Compacts(Plan),
}

/// Decides it. `remembered`: what the agent remembers, as it is shown. Blocks: it reads docs/.
#[must_use]
pub fn prepare(call: &CallModel, remembered: Option<String>, accepts: Accepts) -> Prepared {
    let (record, set) = (&call.messages[..], &call.working_set);
    let fixed = meter::fixed(&call.facts, remembered.as_deref());
    let tools = tools::offer(call.facts.rules(), room_for_tools(accepts.tokens, fixed));
    let limit = fits(&call.facts, accepts.tokens, fixed + tools.tokens);
    if let Some(plan) = plan(record, (call.view, call.opened), set, limit, call.wish) {
        return Prepared::Compacts(plan);
    }
    let view = call.view.min(record.len());
    let mut asked = prompt(&call.facts, remembered, &record[view..], set, accepts, tools, call.tight);
    asked.left_out += view;
    if let Some(word) = call.last_word {
        asked.last_word(word);
    }
    Prepared::Prompt(Box::new(asked))
}
