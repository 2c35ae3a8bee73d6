//! Idle timers, pins and rewinds.

use chorus_proto::{ErrorKind, EventType, Trigger};
use uuid::Uuid;

use super::{Bench, draft, failed, reply, restore, save, session};
use crate::agent::effect::{Draft, Effect};
use crate::agent::event::{Event, Reply, Verb};
use crate::clock::Ticks;

fn idle_at(bench: &Bench) -> Verb {
    let deadline = bench.state.context().and_then(|context| context.deadline);
    Verb::Idle { due: deadline.expect("a deadline").due }
}

#[test]
fn an_idle_context_is_saved_cleared_and_announced_once() {
    let mut bench = Bench::new();
    bench.fill(&["one"]);
    let verb = idle_at(&bench);
    let draft = draft(bench.ask(verb));
    assert_eq!(draft.trigger, Trigger::IdleTimeout);
    assert!(matches!(bench.written(&draft)[..], [Effect::End(_)]));
    let effects = bench.handle(Event::Ended(Ok(())));
    let [Effect::IdleNotice { written: Some(_), timeout, .. }, Effect::Reply(..)] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(timeout.as_secs(), 1800);
    assert!(bench.state.is_empty());
}

#[test]
fn an_idle_context_that_a_session_holds_is_not_saved_again() {
    let mut bench = Bench::new();
    bench.ask(restore(false));
    bench.handle(Event::Replaced(Ok(())));
    let verb = idle_at(&bench);
    assert!(matches!(bench.ask(verb)[..], [Effect::End(_)]));
    let effects = bench.handle(Event::Ended(Ok(())));
    let held_by = Uuid::from_u128(5);
    assert!(matches!(&effects[..], [Effect::IdleNotice { session, written: None, .. }, _] if *session == held_by));
}

#[test]
fn a_timer_that_lost_the_race_does_nothing() {
    let mut bench = Bench::new();
    bench.fill(&["one"]);
    let late = idle_at(&bench);
    bench.ticks = Ticks(1);
    // The message is under way when the timer comes: the timer waits for it, and then is late.
    bench.append("two");
    assert!(bench.ask(late).is_empty());
    let effects = bench.durable(2);
    assert!(matches!(
        effects[..],
        [Effect::Reply(_, Ok(Reply::Appended(_))), Effect::Reply(_, Ok(Reply::PutAway(None)))]
    ));
    assert_eq!(bench.texts(), ["one", "two"]);
}

#[test]
fn pins_start_no_timer_and_are_nothing_to_save() {
    let mut bench = Bench::new();
    let pin = || Verb::Pin { id: "p".into(), text: "the old column stays".into() };
    let effects = bench.ask(pin());
    let [Effect::Change(change)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((change.number, change.deadline, change.totals.messages), (0, None, 0));
    assert!(
        matches!(reply(bench.handle(Event::Changed(Ok(())))), Ok(Reply::Pinned(set)) if set.pinned_facts.len() == 1)
    );
    assert_eq!(reply(bench.ask(save())).unwrap_err().kind, ErrorKind::NothingToSave);
    // The first message goes into the context that the pin began, and the save has the pin.
    let effects = bench.append("one");
    assert!(matches!(&effects[..], [Effect::Append(append)] if append.first == 1));
    bench.durable(1);
    assert_eq!(draft(bench.ask(save())).working_set.pinned_facts[0].text, "the old column stays");
}

#[test]
fn pins_come_out_by_number() {
    let mut bench = Bench::new();
    assert_eq!(reply(bench.ask(Verb::Unpin { number: 1 })).unwrap_err().kind, ErrorKind::NotFound);
    for text in ["a", "b"] {
        bench.ask(Verb::Pin { id: text.into(), text: text.into() });
        bench.handle(Event::Changed(Ok(())));
    }
    bench.ask(Verb::Unpin { number: 1 });
    match reply(bench.handle(Event::Changed(Ok(())))) {
        Ok(Reply::Pinned(set)) => assert_eq!(set.pinned_facts.iter().map(|f| &f.text[..]).collect::<Vec<_>>(), ["b"]),
        other => panic!("{other:?}"),
    }
    bench.ask(Verb::Pin { id: "c".into(), text: "c".into() });
    assert!(reply(bench.handle(Event::Changed(Err(failed())))).is_err());
    assert_eq!(bench.state.context().unwrap().working_set.pinned_facts.len(), 1);
}

#[test]
fn a_rewind_drops_turns_and_can_be_taken_back() {
    let mut bench = Bench::new();
    bench.fill(&["one", "two", "three"]);
    bench.ask(save());
    let saved = session(&draft_of(&bench));
    bench.handle(Event::Written(Ok(saved.into())));
    assert_eq!(bench.state.context().unwrap().unsaved(), 0);
    let effects = bench.ask(Verb::Rewind { turns: 2 });
    assert!(matches!(&effects[..], [Effect::Change(change)] if change.totals.messages == 1 && change.saved == 1));
    assert!(matches!(reply(bench.handle(Event::Changed(Ok(())))), Ok(Reply::Rewound { moved: 2, messages: 1 })));
    assert_eq!(bench.texts(), ["one"]);
    bench.ask(Verb::Unrewind);
    bench.handle(Event::Changed(Ok(())));
    assert_eq!(bench.texts(), ["one", "two", "three"]);
    assert_eq!(bench.state.context().unwrap().unsaved(), 0);
    assert_eq!(reply(bench.ask(Verb::Unrewind)).unwrap_err().kind, ErrorKind::Denied);
    assert_eq!(reply(bench.ask(Verb::Rewind { turns: 4 })).unwrap_err().kind, ErrorKind::InvalidParams);
    // What is said after a rewind is unsaved, though a session holds as many messages.
    bench.ask(Verb::Rewind { turns: 1 });
    bench.handle(Event::Changed(Ok(())));
    bench.append("other");
    bench.durable(3);
    assert_eq!(bench.state.context().unwrap().unsaved(), 1);
    assert_eq!(reply(bench.ask(Verb::Unrewind)).unwrap_err().kind, ErrorKind::Denied);
}

#[test]
fn what_comes_back_after_a_save_is_in_no_session_that_the_context_knows() {
    let mut bench = Bench::new();
    bench.fill(&["one", "two"]);
    for verb in [save(), Verb::Rewind { turns: 1 }, save()] {
        match &bench.ask(verb)[..] {
            [Effect::Write(draft)] => drop(bench.written(draft)),
            _ => drop(bench.handle(Event::Changed(Ok(())))),
        }
    }
    bench.ask(Verb::Unrewind);
    bench.handle(Event::Changed(Ok(())));
    let verb = idle_at(&bench);
    assert_eq!(draft(bench.ask(verb)).totals.messages, 2, "the newest session holds one");
}

/// The save that is under way, as it was handed out.
fn draft_of(bench: &Bench) -> Box<Draft> {
    let context = bench.state.context().unwrap();
    Box::new(Draft {
        facts: bench.facts.clone(),
        context: context.no,
        ends: false,
        trigger: Trigger::ManualSave,
        description: None,
        tags: Vec::new(),
        now: bench.now,
        started_at: context.started_at,
        parent: None,
        messages: context.messages.clone(),
        totals: context.totals,
        working_set: context.working_set.clone(),
        restoration: context.restoration,
    })
}

#[test]
fn observers_hear_what_happened_in_order() {
    let mut bench = Bench::new();
    bench.fill(&["one"]);
    let mut told = Vec::new();
    let mut hear = |effects: Vec<Effect>| {
        told.extend(effects.into_iter().filter_map(|e| if let Effect::Tell(kind, _) = e { Some(kind) } else { None }));
    };
    bench.ask(Verb::Save { description: None, tags: Vec::new(), clear: true });
    let written = session(&draft_of(&bench));
    hear(bench.state.handle(Event::Written(Ok(written.into()))));
    hear(bench.state.handle(Event::Ended(Ok(()))));
    assert_eq!(told, [EventType::ContextSaved, EventType::ContextCleared]);
}
