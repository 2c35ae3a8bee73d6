//! Tests of idle timers, pins and rewinds.

use crate::test_support::sample_session;
use chorus_base::Ticks;
use chorus_proto::{ErrorKind, EventType, Role, Trigger};
use chorus_session::notes::{NoteEdit, NoteRef};
use uuid::Uuid;

use super::{Fixture, only_draft, only_reply, pin, restore_command, save_command, stored, test_error};
use crate::effect::{Effect, SessionDraft};
use crate::event::{AgentCommand, CommandOutcome, Event, RewoundContext};

fn expire_command(bench: &Fixture) -> AgentCommand {
    let deadline = bench.state.context().and_then(|context| context.deadline);
    AgentCommand::Expire { due: deadline.expect("a deadline").due }
}

#[test]
fn an_idle_context_is_saved_cleared_and_announced_once() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one"]);
    let verb = expire_command(&bench);
    let draft = only_draft(bench.ask(verb));
    assert_eq!(draft.trigger, Trigger::IdleTimeout);
    assert!(matches!(bench.complete_write(&draft)[..], [Effect::EndContext(_)]));
    let effects = bench.handle(Event::ContextEnded(Ok(())));
    let [Effect::PostIdleNotice { written: Some(_), timeout, .. }, Effect::Reply(..)] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(timeout.as_secs(), 1800);
    assert!(bench.state.is_empty());
}

#[test]
fn an_idle_context_that_a_session_holds_is_not_saved_again() {
    let mut bench = Fixture::new();
    bench.ask(restore_command(false));
    bench.handle(Event::ContextReplaced(Ok(())));
    let verb = expire_command(&bench);
    assert!(matches!(bench.ask(verb)[..], [Effect::EndContext(_)]));
    let effects = bench.handle(Event::ContextEnded(Ok(())));
    let held_by = Uuid::from_u128(5);
    assert!(matches!(&effects[..], [Effect::PostIdleNotice { session, written: None, .. }, _] if *session == held_by));
}

#[test]
fn the_messages_of_a_long_context_that_ends_are_freed_elsewhere() {
    for (count, is_long) in [(4095, false), (4096, true)] {
        let mut bench = Fixture::new();
        let messages = (0..count).map(|number| stored(Role::User, &number.to_string())).collect();
        bench.ask(AgentCommand::Append { messages, key: None });
        bench.complete_append(count);
        bench.ask(AgentCommand::Clear { save: false });
        let effects = bench.handle(Event::ContextEnded(Ok(())));
        let freed = effects.iter().filter_map(|effect| match effect {
            Effect::FreeMessages(messages) => Some(messages.len() as u64),
            _ => None,
        });
        assert_eq!(freed.collect::<Vec<_>>(), if is_long { vec![count] } else { Vec::new() });
        assert!(bench.state.is_empty());
    }
}

#[test]
fn a_timer_that_lost_the_race_does_nothing() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one"]);
    let late = expire_command(&bench);
    bench.ticks = Ticks(1);
    // The message is being recorded when the timer fires: the timer waits for it and is then out of date.
    bench.append("two");
    assert!(bench.ask(late).is_empty());
    let effects = bench.complete_append(2);
    assert!(matches!(
        effects[..],
        [Effect::Reply(_, Ok(CommandOutcome::Appended(_))), Effect::Reply(_, Ok(CommandOutcome::SavedIfUnsaved(None)))]
    ));
    assert_eq!(bench.texts(), ["one", "two"]);
}

#[test]
fn pins_start_no_timer_and_are_nothing_to_save() {
    let mut bench = Fixture::new();
    let effects = bench.ask(pin("the old column stays"));
    let [Effect::RecordEdit(change)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((change.record_number, change.deadline, change.totals.messages), (0, None, 0));
    assert!(
        matches!(only_reply(bench.handle(Event::EditRecorded(Ok(())))), Ok(CommandOutcome::NotesEdited(edited)) if edited.working_set.pinned_facts.len() == 1)
    );
    assert_eq!(only_reply(bench.ask(save_command())).unwrap_err().kind, ErrorKind::NothingToSave);
    // The first message goes into the context that the pin started, and the save has the pin.
    let effects = bench.append("one");
    assert!(matches!(&effects[..], [Effect::Append(append)] if append.first_record == 1));
    bench.complete_append(1);
    assert_eq!(only_draft(bench.ask(save_command())).working_set.pinned_facts[0].text, "the old column stays");
}

#[test]
fn pins_come_out_by_number() {
    let unpin = || AgentCommand::EditNotes(Box::new(NoteEdit::Remove { note: NoteRef::pinned_fact(1) }));
    let mut bench = Fixture::new();
    assert_eq!(only_reply(bench.ask(unpin())).unwrap_err().kind, ErrorKind::NotFound);
    for text in ["a", "b"] {
        bench.ask(pin(text));
        bench.handle(Event::EditRecorded(Ok(())));
    }
    bench.ask(unpin());
    match only_reply(bench.handle(Event::EditRecorded(Ok(())))) {
        Ok(CommandOutcome::NotesEdited(edited)) => {
            assert_eq!(edited.working_set.pinned_facts.iter().map(|f| &f.text[..]).collect::<Vec<_>>(), ["b"])
        }
        other => panic!("{other:?}"),
    }
    bench.ask(pin("c"));
    assert!(only_reply(bench.handle(Event::EditRecorded(Err(test_error())))).is_err());
    assert_eq!(bench.state.context().unwrap().working_set.pinned_facts.len(), 1);
}

#[test]
fn a_rewind_drops_turns_and_can_be_taken_back() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one", "two", "three"]);
    bench.ask(save_command());
    let saved = sample_session(&draft_in_progress(&bench));
    bench.handle(Event::SessionWritten(Ok(saved.into())));
    assert_eq!(bench.state.context().unwrap().unsaved(), 0);
    let effects = bench.ask(AgentCommand::Rewind { turns: 2 });
    assert!(matches!(&effects[..], [Effect::RecordEdit(change)] if change.totals.messages == 1 && change.saved == 1));
    assert!(matches!(
        only_reply(bench.handle(Event::EditRecorded(Ok(())))),
        Ok(CommandOutcome::Rewound(RewoundContext { moved_messages: 2, messages: 1 }))
    ));
    assert_eq!(bench.texts(), ["one"]);
    bench.ask(AgentCommand::Unrewind);
    bench.handle(Event::EditRecorded(Ok(())));
    assert_eq!(bench.texts(), ["one", "two", "three"]);
    assert_eq!(bench.state.context().unwrap().unsaved(), 0);
    assert_eq!(only_reply(bench.ask(AgentCommand::Unrewind)).unwrap_err().kind, ErrorKind::Denied);
    assert_eq!(only_reply(bench.ask(AgentCommand::Rewind { turns: 4 })).unwrap_err().kind, ErrorKind::InvalidParams);
    // A message after a rewind is unsaved, even though a session holds as many messages.
    bench.ask(AgentCommand::Rewind { turns: 1 });
    bench.handle(Event::EditRecorded(Ok(())));
    bench.append("other");
    bench.complete_append(3);
    assert_eq!(bench.state.context().unwrap().unsaved(), 1);
    assert_eq!(only_reply(bench.ask(AgentCommand::Unrewind)).unwrap_err().kind, ErrorKind::Denied);
}

#[test]
fn what_comes_back_after_a_save_is_in_no_session_that_the_context_knows() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one", "two"]);
    for verb in [save_command(), AgentCommand::Rewind { turns: 1 }, save_command()] {
        match &bench.ask(verb)[..] {
            [Effect::WriteSession(draft)] => drop(bench.complete_write(draft)),
            _ => drop(bench.handle(Event::EditRecorded(Ok(())))),
        }
    }
    bench.ask(AgentCommand::Unrewind);
    bench.handle(Event::EditRecorded(Ok(())));
    let verb = expire_command(&bench);
    assert_eq!(only_draft(bench.ask(verb)).totals.messages, 2, "the newest session holds one");
}

/// Returns the draft of the save in progress.
fn draft_in_progress(bench: &Fixture) -> Box<SessionDraft> {
    let context = bench.state.context().unwrap();
    Box::new(SessionDraft {
        settings: bench.settings.clone(),
        conversation: None,
        context: context.number,
        ends_context: false,
        trigger: Trigger::ManualSave,
        description: None,
        tags: Vec::new(),
        now: bench.now,
        started_at: context.started_at,
        parent: None,
        saved_session: None,
        messages: context.messages.clone(),
        totals: context.totals,
        working_set: context.working_set.clone(),
        restoration: context.restoration,
    })
}

#[test]
fn observers_hear_what_happened_in_order() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one"]);
    let mut told = Vec::new();
    let mut listener = |effects: Vec<Effect>| {
        told.extend(
            effects.into_iter().filter_map(|e| if let Effect::EmitEvent(kind, _) = e { Some(kind) } else { None }),
        );
    };
    bench.ask(AgentCommand::Save { description: None, tags: Vec::new(), clear: true });
    let written = sample_session(&draft_in_progress(&bench));
    listener(bench.state.handle(Event::SessionWritten(Ok(written.into()))));
    listener(bench.state.handle(Event::ContextEnded(Ok(()))));
    assert_eq!(told, [EventType::ContextSaved, EventType::ContextCleared]);
}
