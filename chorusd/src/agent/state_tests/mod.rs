//! The state machine, event by event.

mod changes;
mod links;
mod tools;
mod turns;

use core::time::Duration;
use std::sync::Arc;

use chorus_proto::methods::context::AppendResult;
use chorus_proto::session::SESSION_SCHEMA;
use chorus_proto::{
    ErrorKind, NewMessage, Role, Session, SessionHeader, SummarySource, TokenPair, Trigger, WorkingSet,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::Facts;
use super::context::{Deadline, Pick, Room, whole_calls};
use super::effect::{Draft, Effect};
use super::event::{Asked, Event, Journalled, Reply, Request, RequestId, Restore, Verb};
use super::state::State;
use crate::clock::Ticks;
use crate::failure::Failure;
use crate::message::{ContextNo, Stored};

/// A state with what it needs from outside.
struct Bench {
    state: State,
    facts: Arc<Facts>,
    next: u64,
    now: Timestamp,
    ticks: Ticks,
}

impl Bench {
    fn new() -> Self {
        let facts = Facts {
            id: Uuid::from_u128(1),
            name: "a".into(),
            dir: "/home/agents/a".into(),
            model: None,
            limits: Default::default(),
            idle_timeout: Some(Duration::from_secs(1800)),
            ..Facts::default()
        };
        let now = "2026-02-12T10:00:00Z".parse().unwrap();
        Self { state: State::default(), facts: Arc::new(facts), next: 0, now, ticks: Ticks(0) }
    }

    /// What comes of an event, without what is only told to observers.
    fn handle(&mut self, event: Event) -> Vec<Effect> {
        let effects = self.state.handle(event).into_iter();
        effects.filter(|effect| !matches!(effect, Effect::Tell(..))).collect()
    }

    fn ask(&mut self, verb: Verb) -> Vec<Effect> {
        self.next += 1;
        let fresh = ContextNo(i64::try_from(self.next).unwrap() + 100);
        let (id, facts, now, ticks) = (self.next, self.facts.clone(), self.now, self.ticks);
        self.handle(Event::Request(Box::new(Request { asked: Asked { id, facts, now, ticks, fresh }, verb })))
    }

    fn append(&mut self, text: &str) -> Vec<Effect> {
        self.ask(Verb::Append { messages: vec![stored(Role::User, text)], key: None })
    }

    fn durable(&mut self, messages: u64) -> Vec<Effect> {
        self.handle(Event::Appended(Ok(Journalled::Now(AppendResult { appended: 1, messages, secrets_found: None }))))
    }

    fn fill(&mut self, texts: &[&str]) {
        for (index, text) in texts.iter().enumerate() {
            self.append(text);
            self.durable(index as u64 + 1);
        }
    }

    fn texts(&mut self) -> Vec<String> {
        match reply(self.ask(Verb::Show { pick: Pick::Last(u64::MAX), room: Room::of(usize::MAX) })) {
            Ok(Reply::Page { messages, .. }) => {
                messages.iter().map(|message| message.to_message().unwrap().content).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn written(&mut self, draft: &Draft) -> Vec<Effect> {
        self.handle(Event::Written(Ok(session(draft).into())))
    }
}

fn stored(role: Role, text: &str) -> Stored {
    let message = NewMessage::text(role, text).complete(|| text.to_owned(), Timestamp::UNIX_EPOCH);
    Stored::new(&message).unwrap()
}

pub(super) fn session(draft: &Draft) -> Session {
    let header = SessionHeader {
        schema: SESSION_SCHEMA,
        id: Uuid::from_u128(77),
        session_id: "2026-02-12_x".into(),
        agent_id: draft.facts.id,
        agent_name: draft.facts.name.clone(),
        description: None,
        summary: None,
        summary_source: SummarySource::None,
        saved_at: draft.now,
        started_at: draft.started_at,
        trigger: draft.trigger,
        model: None,
        message_count: draft.totals.messages,
        query_count: 0,
        token_estimate: 0,
        restoration_tokens: TokenPair::default(),
        parent_id: draft.parent,
        workspace_commit: None,
        tags: Vec::new(),
        working_set: WorkingSet::default(),
    };
    Session { header, short_id: "x".into(), file_path: String::new(), available: true, corrupt: None }
}

fn reply(mut effects: Vec<Effect>) -> Result<Reply, Failure> {
    assert_eq!(effects.len(), 1, "{effects:?}");
    match effects.pop() {
        Some(Effect::Reply(_, result)) => result,
        other => panic!("{other:?}"),
    }
}

fn replied_to(effects: &[Effect]) -> Vec<RequestId> {
    effects.iter().filter_map(|e| if let Effect::Reply(id, _) = e { Some(*id) } else { None }).collect()
}

fn draft(mut effects: Vec<Effect>) -> Box<Draft> {
    match effects.pop() {
        Some(Effect::Write(draft)) => draft,
        other => panic!("{other:?}"),
    }
}

fn save() -> Verb {
    Verb::Save { description: None, tags: Vec::new(), clear: false }
}

fn failed() -> Failure {
    Failure::disk_full()
}

#[test]
fn a_message_is_in_the_context_when_the_journal_has_it() {
    let mut bench = Bench::new();
    let effects = bench.append("one");
    let [Effect::Append(append)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((append.first, append.begin.context), (0, ContextNo(101)));
    let half_an_hour = Ticks(0).after(Duration::from_secs(1800));
    let at = "2026-02-12T10:30:00Z".parse().unwrap();
    assert_eq!(append.deadline, Some(Deadline { due: half_an_hour, at }));
    assert!(bench.state.context().is_none());
    assert!(matches!(reply(bench.durable(1)), Ok(Reply::Appended(_))));
    assert_eq!(bench.texts(), ["one"]);
}

#[test]
fn appends_flow_and_keep_their_order() {
    let mut bench = Bench::new();
    let first = bench.append("one");
    let second = bench.append("two");
    let ([Effect::Append(first)], [Effect::Append(second)]) = (&first[..], &second[..]) else { panic!() };
    assert_eq!(first.begin, second.begin, "both begin the same context");
    assert_eq!((first.first, second.first), (0, 1));
    assert_eq!(replied_to(&bench.durable(1)), [1]);
    assert_eq!(replied_to(&bench.durable(2)), [2]);
    assert_eq!(bench.texts(), ["one", "two"]);
}

#[test]
fn an_append_that_fails_leaves_nothing() {
    let mut bench = Bench::new();
    bench.append("lost");
    bench.append("kept");
    assert!(reply(bench.handle(Event::Appended(Err(failed())))).is_err());
    bench.durable(1);
    assert_eq!(bench.texts(), ["kept"]);
    let mut bench = Bench::new();
    bench.append("lost");
    bench.handle(Event::Appended(Err(failed())));
    assert!(bench.state.is_empty());
}

#[test]
fn a_known_key_adds_nothing() {
    let mut bench = Bench::new();
    bench.append("again");
    let answer = AppendResult { appended: 1, messages: 9, secrets_found: None };
    let effects = bench.handle(Event::Appended(Ok(Journalled::Before(answer.clone()))));
    assert!(matches!(reply(effects), Ok(Reply::Appended(given)) if given == answer));
    assert!(bench.state.is_empty());
}

#[test]
fn a_save_waits_for_the_appends_before_it_and_keeps_those_after_it_out() {
    let mut bench = Bench::new();
    bench.append("one");
    assert!(bench.ask(save()).is_empty());
    assert!(!bench.state.accepts());
    let effects = bench.durable(1);
    assert_eq!(effects.len(), 2, "the answer to the append, then the save");
    let draft = draft(effects);
    assert_eq!((draft.totals.messages, draft.trigger), (1, Trigger::ManualSave));
    assert!(!bench.state.accepts());
    assert!(matches!(reply(bench.written(&draft)), Ok(Reply::Saved { cleared: false, .. })));
    assert!(bench.state.accepts());
    assert_eq!(bench.state.context().unwrap().unsaved(), 0);
    assert_eq!(bench.texts(), ["one"]);
}

#[test]
fn an_empty_context_is_nothing_to_save() {
    let failure = reply(Bench::new().ask(save())).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::NothingToSave);
}

#[test]
fn a_save_that_fails_changes_nothing() {
    let mut bench = Bench::new();
    bench.fill(&["one"]);
    bench.ask(Verb::Save { description: None, tags: Vec::new(), clear: true });
    assert_eq!(reply(bench.handle(Event::Written(Err(failed())))).unwrap_err(), failed());
    assert_eq!(bench.texts(), ["one"]);
    assert_eq!(bench.state.context().unwrap().unsaved(), 1);
}

#[test]
fn save_and_clear_ends_the_context() {
    let mut bench = Bench::new();
    bench.fill(&["one"]);
    let draft = draft(bench.ask(Verb::Save { description: None, tags: Vec::new(), clear: true }));
    assert!(matches!(bench.written(&draft)[..], [Effect::End(ContextNo(101))]));
    assert!(matches!(reply(bench.handle(Event::Ended(Ok(())))), Ok(Reply::Saved { cleared: true, .. })));
    assert!(bench.state.is_empty());
}

#[test]
fn clear_says_how_many_went_and_a_failed_one_keeps_them() {
    let mut bench = Bench::new();
    bench.fill(&["one", "two"]);
    bench.ask(Verb::Clear { save: false });
    assert!(reply(bench.handle(Event::Ended(Err(failed())))).is_err());
    assert_eq!(bench.texts().len(), 2);
    bench.ask(Verb::Clear { save: false });
    match reply(bench.handle(Event::Ended(Ok(())))) {
        Ok(Reply::Cleared(result)) => assert_eq!(result.discarded, 2),
        other => panic!("{other:?}"),
    }
    match reply(bench.ask(Verb::Clear { save: true })) {
        Ok(Reply::Cleared(result)) => assert_eq!((result.discarded, result.saved), (0, None)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_next_context_begins_anew() {
    let mut bench = Bench::new();
    bench.fill(&["one", "two"]);
    bench.ask(Verb::Clear { save: false });
    bench.handle(Event::Ended(Ok(())));
    let effects = bench.append("three");
    let [Effect::Append(append)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(append.first, 0);
    assert_ne!(append.begin.context, ContextNo(101));
}

fn restore(discard: bool) -> Verb {
    let messages = vec![stored(Role::User, "old"), stored(Role::Assistant, "answer")];
    let working_set = WorkingSet::default();
    Verb::Restore(Box::new(Restore {
        session: Uuid::from_u128(5),
        session_id: "old".into(),
        messages,
        added: Vec::new(),
        working_set,
        restoration: TokenPair { input: 120, output: 15 },
        discard,
    }))
}

#[test]
fn restore_saves_what_is_unsaved_first() {
    let mut bench = Bench::new();
    bench.fill(&["new"]);
    let draft = draft(bench.ask(restore(false)));
    assert_eq!(draft.trigger, Trigger::Restore);
    let effects = bench.written(&draft);
    let [Effect::Replace { old: Some(ContextNo(101)), new, session, totals, .. }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((*session, new.parent, totals.messages), (Uuid::from_u128(5), Some(Uuid::from_u128(5)), 2));
    match reply(bench.handle(Event::Replaced(Ok(())))) {
        Ok(Reply::Restored { messages: 2, saved_first: Some(_) }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.texts(), ["old", "answer"]);
    assert_eq!(bench.state.context().unwrap().unsaved(), 0);
    let effects = bench.append("on");
    let [Effect::Append(append)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(append.first, 3, "the reference, the working set and what resuming cost stand before it");
}

#[test]
fn restore_with_discard_and_of_a_saved_context_saves_nothing() {
    let mut bench = Bench::new();
    bench.fill(&["new"]);
    assert!(matches!(bench.ask(restore(true))[..], [Effect::Replace { .. }]));
    bench.handle(Event::Replaced(Ok(())));
    assert!(matches!(bench.ask(restore(false))[..], [Effect::Replace { .. }]));
}

#[test]
fn a_restore_may_bring_messages_that_are_in_no_session() {
    let mut bench = Bench::new();
    let Verb::Restore(mut merged) = restore(false) else { panic!() };
    merged.added = vec![stored(Role::Assistant, "account")];
    let effects = bench.ask(Verb::Restore(merged));
    let [Effect::Replace { totals, added, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((totals.messages, added.len()), (2, 1));
    bench.handle(Event::Replaced(Ok(())));
    let context = bench.state.context().unwrap();
    assert_eq!((context.totals.messages, context.unsaved(), context.is_unsaved()), (3, 1, true));
    let effects = bench.append("on");
    let [Effect::Append(append)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(append.first, 4, "behind the reference, the working set, what resuming cost and the account");
}

#[test]
fn a_restore_that_fails_keeps_the_context() {
    let mut bench = Bench::new();
    bench.fill(&["new"]);
    bench.ask(restore(true));
    assert!(reply(bench.handle(Event::Replaced(Err(failed())))).is_err());
    assert_eq!(bench.texts(), ["new"]);
}

#[test]
fn putting_away_saves_only_what_is_unsaved() {
    let mut bench = Bench::new();
    let shutdown = || Verb::PutAway { trigger: Trigger::Shutdown, end: false };
    assert!(matches!(reply(bench.ask(shutdown())), Ok(Reply::PutAway(None))));
    bench.fill(&["one"]);
    let draft = draft(bench.ask(shutdown()));
    assert_eq!(draft.trigger, Trigger::Shutdown);
    assert!(matches!(reply(bench.written(&draft)), Ok(Reply::PutAway(Some(_)))));
    assert!(matches!(reply(bench.ask(shutdown())), Ok(Reply::PutAway(None))));
    assert_eq!(bench.texts(), ["one"]);
    assert!(matches!(bench.ask(Verb::PutAway { trigger: Trigger::Destroy, end: true })[..], [Effect::End(_)]));
}

#[test]
fn a_reference_is_written_out_only_for_its_session() {
    let mut bench = Bench::new();
    bench.ask(restore(false));
    bench.handle(Event::Replaced(Ok(())));
    assert!(matches!(reply(bench.ask(Verb::Materialise(Uuid::from_u128(6)))), Ok(Reply::Materialised)));
    let effects = bench.ask(Verb::Materialise(Uuid::from_u128(5)));
    assert!(matches!(&effects[..], [Effect::Materialise { context, .. }] if context.messages.len() == 2));
    bench.handle(Event::Materialised(Ok(())));
    assert_eq!(bench.state.context().unwrap().base_session, None);
    let effects = bench.append("on");
    assert!(matches!(&effects[..], [Effect::Append(append)] if append.first == 4));
}

#[test]
fn a_held_agent_takes_nothing_until_it_is_let_go() {
    let mut bench = Bench::new();
    assert!(matches!(reply(bench.ask(Verb::Hold { goes: false })), Ok(Reply::Held)));
    assert!(!bench.state.accepts() && !bench.state.is_empty());
    assert!(bench.handle(Event::Released).is_empty());
    assert!(bench.state.accepts() && bench.state.is_empty());
}

#[test]
fn a_context_that_cannot_be_read_back_can_be_cleared_or_replaced() {
    let mut bench = Bench::new();
    bench.fill(&["one"]);
    let context = bench.state.context().unwrap().clone();
    let unreadable = || State::broken(context.clone(), Failure::internal("gone"));
    bench.state = unreadable();
    for verb in [
        save(),
        restore(false),
        Verb::Show { pick: Pick::Last(1), room: Room::of(usize::MAX) },
        Verb::Clear { save: true },
    ] {
        assert_eq!(reply(bench.ask(verb)).unwrap_err().message, "gone");
    }
    assert_eq!(reply(bench.append("two")).unwrap_err().message, "gone");
    assert!(matches!(bench.ask(Verb::Clear { save: false })[..], [Effect::End(_)]));
    bench.state = unreadable();
    assert!(matches!(bench.ask(restore(true))[..], [Effect::Replace { .. }]));
    bench.handle(Event::Replaced(Ok(())));
    assert_eq!(bench.texts(), ["old", "answer"]);
}

#[test]
fn events_that_nobody_waits_for_are_dropped() {
    let mut bench = Bench::new();
    bench.fill(&["one"]);
    for event in [
        Event::Appended(Err(failed())),
        Event::Written(Err(failed())),
        Event::Ended(Ok(())),
        Event::Replaced(Ok(())),
        Event::Materialised(Ok(())),
        Event::Released,
    ] {
        assert!(bench.handle(event).is_empty());
    }
    assert_eq!(bench.texts(), ["one"]);
}

#[test]
fn a_cut_never_parts_a_call_from_its_result() {
    let call = r#"{"id":"2","role":"assistant","content":"","timestamp":"2026-01-01T00:00:00Z","tool_calls":[{"id":"c1","name":"t","params":{}},{"id":"c2","name":"t","params":{}}]}"#;
    let result = |id: &str| {
        let json = format!(
            r#"{{"id":"r","role":"tool_result","content":"","timestamp":"2026-01-01T00:00:00Z","tool_call_id":"{id}"}}"#
        );
        Stored::parse(json.into()).unwrap()
    };
    let messages = [
        stored(Role::User, "q"),
        Stored::parse(call.into()).unwrap(),
        result("c1"),
        result("c2"),
        stored(Role::Assistant, "a"),
    ];
    let cuts: Vec<usize> = (0..=6).map(|at| whole_calls(&messages, at)).collect();
    assert_eq!(cuts, [0, 1, 1, 1, 4, 5, 5]);
    let twice =
        [stored(Role::User, "q"), Stored::parse(call.replace("c2", "c1").into()).unwrap(), result("c1"), result("c1")];
    let cuts: Vec<usize> = (0..=4).map(|at| whole_calls(&twice, at)).collect();
    assert_eq!(cuts, [0, 1, 1, 1, 4], "one result answers one call");
}
