//! Tests of continuations.

use chorus_proto::{Item, ItemSource, Receipt, Role, TokenPair, Trigger, WorkingSet};
use chorus_session::notes::NoteList;
use chorus_session::stored_message::ContextNo;
use uuid::Uuid;

use super::{Fixture, add_note, only_draft, only_reply, pin, stored};
use crate::effect::Effect;
use crate::event::{
    AgentCommand, CommandOutcome, CompactedContext, CompactionTarget, Event, Restore, RestoredContext, Resume,
    UndoContinuation,
};

fn resume_command(session: u128, compacts: Option<u64>) -> AgentCommand {
    AgentCommand::Resume(Box::new(Resume {
        session: Uuid::from_u128(session),
        session_id: "2026-02-12_x".into(),
        working_set: WorkingSet::default(),
        acknowledgement: stored(Role::Assistant, "I am ready."),
        restoration: TokenPair { input: 7, output: 3 },
        compaction: compacts.map(|messages| CompactionTarget {
            context: ContextNo(101),
            messages,
            receipt: Receipt::default(),
        }),
    }))
}

#[test]
fn what_goes_on_while_a_compaction_is_prepared_is_not_left_behind() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one"]);
    let saved = only_draft(bench.ask(AgentCommand::SaveForCompaction));
    assert_eq!(saved.trigger, Trigger::Compact);
    bench.complete_write(&saved);
    bench.append("two");
    bench.complete_append(2);
    assert!(matches!(
        only_reply(bench.ask(resume_command(77, Some(1)))),
        Ok(CommandOutcome::ContextMovedOn { replaced: false })
    ));
    assert_eq!(bench.texts(), ["one", "two"]);
    // If it is saved again, the new context continues from everything.
    let saved = only_draft(bench.ask(AgentCommand::SaveForCompaction));
    bench.complete_write(&saved);
    bench.ask(pin("younger than the save"));
    bench.handle(Event::EditRecorded(Ok(())));
    let effects = bench.ask(resume_command(77, Some(2)));
    let [Effect::ReplaceWithMessages { new, working_set, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((new.parent, working_set.pinned_facts.len()), (Some(Uuid::from_u128(77)), 1));
    match only_reply(bench.handle(Event::ContextReplaced(Ok(())))) {
        Ok(CommandOutcome::Compacted(CompactedContext { receipt, messages: 1 })) => {
            assert_eq!(receipt.pins, ["younger than the save"])
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.texts(), ["I am ready."]);
}

#[test]
fn what_is_unsaved_is_saved_before_a_resume_and_its_cost_goes_with_the_next_save() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one"]);
    let first = only_draft(bench.ask(resume_command(5, None)));
    assert_eq!((first.trigger, first.messages.len()), (Trigger::Resume, 1));
    let effects = bench.complete_write(&first);
    assert!(matches!(effects[..], [Effect::ReplaceWithMessages { .. }]), "{effects:?}");
    let answer = only_reply(bench.handle(Event::ContextReplaced(Ok(()))));
    assert!(
        matches!(answer, Ok(CommandOutcome::Restored(RestoredContext { messages: 1, saved_first: Some(_) }))),
        "{answer:?}"
    );
    // The records are the working set, the cost and the message.
    let effects = bench.append("two");
    assert!(matches!(&effects[..], [Effect::Append(append)] if append.first_record == 3), "{effects:?}");
    bench.complete_append(2);
    let next = only_draft(bench.ask(AgentCommand::Save { description: None, tags: Vec::new(), clear: false }));
    assert_eq!((next.restoration, next.parent), (TokenPair { input: 7, output: 3 }, Some(Uuid::from_u128(5))));
}

#[test]
fn the_undo_of_a_compaction_by_hand_has_what_was_said_since_behind_the_saved_messages() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one"]);
    let saved = only_draft(bench.ask(AgentCommand::SaveForCompaction));
    bench.complete_write(&saved);
    let effects = bench.ask(resume_command(77, Some(1)));
    let [Effect::ReplaceWithMessages { compaction: Some(_), .. }] = &effects[..] else { panic!("{effects:?}") };
    bench.handle(Event::ContextReplaced(Ok(())));
    // The working set, the cost, the compaction and the opening come first.
    let effects = bench.append("two");
    assert!(matches!(&effects[..], [Effect::Append(append)] if append.first_record == 4), "{effects:?}");
    bench.complete_append(2);
    bench.ask(add_note(NoteList::Decisions, "decided since"));
    bench.handle(Event::EditRecorded(Ok(())));
    let begun = match only_reply(bench.ask(AgentCommand::Uncompact)) {
        Ok(CommandOutcome::BegunByCompaction(begun)) => begun,
        other => panic!("{other:?}"),
    };
    assert_eq!(begun.session, Uuid::from_u128(77));
    let item = |text: &str| Item { id: text.into(), text: text.into(), source: ItemSource::Rule, message_id: None };
    let decisions = vec![item("decided before")];
    let undo = |context| {
        let restore = Restore {
            session: Uuid::from_u128(77),
            session_id: "2026-02-12_x".into(),
            messages: vec![stored(Role::User, "one")],
            appended: Vec::new(),
            working_set: WorkingSet { decisions: decisions.clone(), ..WorkingSet::default() },
            restoration: TokenPair::default(),
            discard: true,
        };
        AgentCommand::UndoContinuation(Box::new(UndoContinuation { context, restore: Box::new(restore) }))
    };
    let elsewhere = only_reply(bench.ask(undo(ContextNo(1))));
    assert!(matches!(elsewhere, Ok(CommandOutcome::ContextMovedOn { replaced: true })), "{elsewhere:?}");
    bench.ask(undo(begun.context));
    let answer = only_reply(bench.handle(Event::ContextReplaced(Ok(()))));
    assert!(matches!(answer, Ok(CommandOutcome::Restored(RestoredContext { messages: 2, .. }))), "{answer:?}");
    assert_eq!(bench.texts(), ["one", "two"]);
    let context = bench.state.context().unwrap();
    let decisions: Vec<_> = context.working_set.decisions.iter().map(|item| &*item.text).collect();
    assert_eq!((decisions, context.unsaved()), (vec!["decided before", "decided since"], 1));
    assert!(context.has_unsaved_changes());
    let again = only_reply(bench.ask(AgentCommand::Uncompact)).unwrap_err();
    assert!(again.message.contains("nothing to undo"), "{again:?}");
}
