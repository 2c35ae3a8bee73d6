//! Replaces the findings of rules in a compaction by what the model has extracted in the background. Part of the state
//! machine.

use chorus_proto::{EventType, ItemSource, WorkingSet};
use chorus_session::stored_message::ContextNo;
use chorus_session::summary::ExtractionNotes;
use serde_json::json;

use super::compaction::{Compaction, CompactionPlan, DerivedState};
use super::effect::{ContextEdit, Effect};
use super::event::{CommandOutcome, RequestMeta};
use super::state::State;

/// Note in a compaction's receipt while the model is making its notes.
pub const NOTES_PENDING: &str = "the model's notes are still being generated and will replace them";

/// Note in a compaction's receipt if the daemon ended before the model's notes were there. They are not made again.
const NOTES_LOST: &str = "the daemon stopped before the model's notes were complete";

/// The result of a background extraction.
#[derive(Debug)]
pub struct ExtractionResult {
    pub context: ContextNo,
    /// The compaction that it belongs to.
    pub plan: CompactionPlan,
    /// The notes, or the reason why there are none.
    pub notes: Result<ExtractionNotes, String>,
}

impl State {
    /// Replaces the findings of rules by the model's notes, if their compaction is still the last one.
    pub(super) fn apply_extraction(
        &mut self,
        asked: &RequestMeta,
        written: ExtractionResult,
        effects: &mut Vec<Effect>,
    ) {
        let ExtractionResult { context: no, plan, notes } = written;
        let same = self.context.as_ref().filter(|context| context.number == no && context.messages.len() >= plan.upto);
        let done = same.and_then(|context| Some((context, context.compactions.last()?)));
        let Some((context, done)) = done.filter(|(_, done)| done.compaction.upto == plan.upto as u64) else {
            effects.push(Effect::Reply(asked.id, Ok(CommandOutcome::Done)));
            return;
        };
        let (base, current) = (done.compaction.derived.clone(), DerivedState::from_working_set(&context.working_set));
        let mut before = context.working_set.clone();
        done.previous.clone().apply_to(&mut before);
        let taken = notes.and_then(|notes| {
            let taken = plan.compact_by_model(&context.messages, &before, notes);
            taken.map_err(|why| format!("the model's reply {why}"))
        });
        let mut after = context.clone();
        let last = after.compactions.last_mut();
        let compaction = match taken {
            Ok(compaction) => compaction,
            Err(why) => {
                let mut compaction = done.compaction.clone();
                compaction.receipt.fallback = Some(why);
                effects.push(Effect::EmitEvent(EventType::ContextNoted, json!(compaction.receipt)));
                if let (Some(last), Some(context)) = (last, &mut self.context) {
                    last.compaction = compaction;
                    *context = after;
                }
                effects.push(Effect::Reply(asked.id, Ok(CommandOutcome::Done)));
                return;
            }
        };
        // Notes may have been edited since the compaction.
        compaction.derived.clone().with_edits(&base, &current).apply_to(&mut after.working_set);
        after.set_revision += 1;
        effects.push(Effect::EmitEvent(EventType::ContextNoted, json!(compaction.receipt)));
        if let Some(last) = last {
            last.compaction = compaction;
        }
        let what = ContextEdit::WorkingSet(Box::new(after.working_set.clone()));
        let begin = self.head_for_edit(asked);
        self.record_edit(asked, begin, after, what, CommandOutcome::Done, effects);
    }
}

/// Updates the receipt of a compaction that is loaded from the journal, if it says that the model is still working.
pub fn mark_notes_lost(compaction: &mut Compaction) {
    let fallback = &mut compaction.receipt.fallback;
    if fallback.as_deref() == Some(NOTES_PENDING) {
        *fallback = Some(NOTES_LOST.to_owned());
    }
}

/// Takes over the model's notes from a loaded working set into the last compaction, if they had replaced the findings
/// of rules. `before` is the working set before it was loaded, with the edits since the compaction.
pub fn restore_notes(compaction: &mut Compaction, before: &WorkingSet, set: &WorkingSet) {
    let Compaction { derived, receipt, .. } = compaction;
    // Without those edits.
    let now = DerivedState::from_working_set(set).with_edits(&DerivedState::from_working_set(before), derived);
    // Nothing else changes the derived part, except for its budget.
    let same = now == DerivedState { token_budget: now.token_budget, ..derived.clone() };
    if receipt.fallback.as_deref() == Some(NOTES_LOST) && !same {
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
            Receipt { source: Some(ItemSource::Rule), fallback: Some(NOTES_PENDING.to_owned()), ..Receipt::default() };
        let mut compaction = Compaction { upto: 1, derived: DerivedState::default(), receipt };
        mark_notes_lost(&mut compaction);
        assert_eq!(compaction.receipt.fallback.as_deref(), Some(NOTES_LOST));
        let item = |source| Item { id: "a".into(), text: "a".into(), source, message_id: None };
        let pinned = WorkingSet { pinned_facts: vec![item(ItemSource::Hand)], ..WorkingSet::default() };
        restore_notes(&mut compaction, &WorkingSet::default(), &pinned);
        assert_eq!(compaction.receipt.fallback.as_deref(), Some(NOTES_LOST), "a pin is no note");
        let noted = WorkingSet { facts: vec![item(ItemSource::Model)], ..pinned.clone() };
        restore_notes(&mut compaction, &pinned, &noted);
        assert_eq!((compaction.receipt.source, compaction.receipt.fallback), (Some(ItemSource::Model), None));
        assert_eq!(compaction.derived, DerivedState::from_working_set(&noted));
    }
}
