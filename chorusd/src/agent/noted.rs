//! What a model has written down of messages that have left the window takes the place of what rules found. Part of the state machine.

use chorus_proto::{EventType, ItemSource, WorkingSet};
use serde_json::json;

use super::compaction::{Compaction, Derived, Plan};
use super::effect::{Effect, What};
use super::event::{Asked, Reply};
use super::state::State;
use super::write_down::LATER;
use crate::message::ContextNo;
use crate::summary::Notes;

/// What the receipt of a compaction says whose notes were not there when the daemon ended: nobody writes them any more.
const NOT_THERE: &str = "the model's notes were not there when the daemon stopped";

/// What the model has written down.
#[derive(Debug)]
pub struct WrittenDown {
    pub context: ContextNo,
    /// The compaction that it belongs to.
    pub plan: Plan,
    /// Why there is nothing, where there is nothing.
    pub notes: Result<Notes, String>,
}

impl State {
    /// Puts what the model has written down in the place of what rules found, where the compaction that it belongs to is still the
    /// last one.
    pub(super) fn note(&mut self, asked: &Asked, written: WrittenDown, effects: &mut Vec<Effect>) {
        let WrittenDown { context: no, plan, notes } = written;
        let same = self.context.as_ref().filter(|context| context.no == no && context.messages.len() >= plan.upto);
        let done = same.and_then(|context| Some((context, context.compactions.last()?)));
        let Some((context, done)) = done.filter(|(_, done)| done.compaction.upto == plan.upto as u64) else {
            effects.push(Effect::Reply(asked.id, Ok(Reply::Done)));
            return;
        };
        let mut before = context.working_set.clone();
        done.before.clone().put_into(&mut before);
        let taken = notes.and_then(|notes| {
            let taken = plan.by_model(&context.messages, &before, notes);
            taken.map_err(|why| format!("the model's answer {why}"))
        });
        let mut after = context.clone();
        let last = after.compactions.last_mut();
        let compaction = match taken {
            Ok(compaction) => compaction,
            Err(why) => {
                let mut compaction = done.compaction.clone();
                compaction.receipt.fallback = Some(why);
                effects.push(Effect::Tell(EventType::ContextNoted, json!(compaction.receipt)));
                if let (Some(last), Some(context)) = (last, &mut self.context) {
                    last.compaction = compaction;
                    *context = after;
                }
                effects.push(Effect::Reply(asked.id, Ok(Reply::Done)));
                return;
            }
        };
        compaction.derived.clone().put_into(&mut after.working_set);
        effects.push(Effect::Tell(EventType::ContextNoted, json!(compaction.receipt)));
        if let Some(last) = last {
            last.compaction = compaction;
        }
        let what = What::WorkingSet(Box::new(after.working_set.clone()));
        let begin = self.pinning(asked);
        self.change(asked, begin, after, what, Reply::Done, effects);
    }
}

/// Changes the receipt of a compaction that is read back from the journal, where it says that the model is still writing.
pub(super) fn without_notes(compaction: &mut Compaction) {
    let fallback = &mut compaction.receipt.fallback;
    if fallback.as_deref() == Some(LATER) {
        *fallback = Some(NOT_THERE.to_owned());
    }
}

/// Puts what a working set that is read back says of the last compaction into it, where the model's notes had taken the place of the rules'.
pub(super) fn with_notes(compaction: &mut Compaction, set: &WorkingSet) {
    let Compaction { derived, receipt, .. } = compaction;
    let now = Derived::of(set);
    // Nothing else changes what is derived, but for its room.
    let same = now == Derived { token_budget: now.token_budget, ..derived.clone() };
    if receipt.fallback.as_deref() == Some(NOT_THERE) && !same {
        (receipt.source, receipt.fallback) = (Some(ItemSource::Model), None);
        *derived = now;
    }
}

#[cfg(test)]
mod tests {
    use chorus_proto::{Item, Receipt};

    use super::*;

    #[test]
    fn a_receipt_that_is_read_back_promises_no_notes() {
        let receipt =
            Receipt { source: Some(ItemSource::Rule), fallback: Some(LATER.to_owned()), ..Receipt::default() };
        let mut compaction = Compaction { upto: 1, derived: Derived::default(), receipt };
        without_notes(&mut compaction);
        assert_eq!(compaction.receipt.fallback.as_deref(), Some(NOT_THERE));
        let item = |source| Item { id: "a".into(), text: "a".into(), source, message_id: None };
        let pinned = WorkingSet { pinned_facts: vec![item(ItemSource::Hand)], ..WorkingSet::default() };
        with_notes(&mut compaction, &pinned);
        assert_eq!(compaction.receipt.fallback.as_deref(), Some(NOT_THERE), "a pin is no note");
        let noted = WorkingSet { facts: vec![item(ItemSource::Model)], ..pinned };
        with_notes(&mut compaction, &noted);
        assert_eq!((compaction.receipt.source, compaction.receipt.fallback), (Some(ItemSource::Model), None));
        assert_eq!(compaction.derived, Derived::of(&noted));
    }
}
