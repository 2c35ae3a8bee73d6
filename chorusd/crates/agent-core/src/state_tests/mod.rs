//! Tests of the state machine, event by event.

mod context_edits;
mod continuation;
mod loading;
mod recall;
mod tools;
mod turn_fixtures;
mod turn_resumption;
mod turns;

use crate::test_support::sample_session;
use core::time::Duration;
use std::sync::Arc;

use chorus_base::Ticks;
use chorus_base::error::Error;
use chorus_proto::methods::context::AppendResult;
use chorus_proto::{ErrorKind, Item, ItemSource, NewMessage, Role, TokenPair, Trigger, WorkingSet};
use chorus_session::notes::{NoteEdit, NoteList};
use chorus_session::stored_message::{ContextNo, StoredMessage};
use jiff::Timestamp;
use uuid::Uuid;

use super::AgentSettings;
use super::context::{Deadline, PageBudget, PageRange, complete_calls_prefix};
use super::effect::{Effect, SessionDraft};
use super::event::{
    AgentCommand, AppendOutcome, CommandOutcome, ContextPage, Event, Request, RequestId, RequestMeta, Restore,
    RestoredContext, SavedContext,
};
use super::state::State;

/// Pins a fact.
fn pin(text: &str) -> AgentCommand {
    add_note(NoteList::PinnedFacts, text)
}

/// Adds a note by hand, with its text as its id.
fn add_note(list: NoteList, text: &str) -> AgentCommand {
    let item = Item { id: text.into(), text: text.into(), source: ItemSource::Hand, message_id: None };
    AgentCommand::EditNotes(Box::new(NoteEdit::Add { list, item }))
}

/// A state machine with the inputs that it needs.
struct Fixture {
    state: State,
    settings: Arc<AgentSettings>,
    next: u64,
    now: Timestamp,
    ticks: Ticks,
}

impl Fixture {
    fn new() -> Self {
        let settings = AgentSettings {
            id: Uuid::from_u128(1),
            name: "a".into(),
            dir: "/home/agents/a".into(),
            model: None,
            limits: Default::default(),
            idle_timeout: Some(Duration::from_secs(1800)),
            ..AgentSettings::default()
        };
        let now = "2026-02-12T10:00:00Z".parse().unwrap();
        Self { state: State::default(), settings: Arc::new(settings), next: 0, now, ticks: Ticks(0) }
    }

    /// Handles an event and returns the effects, without those that only emit events to observers.
    fn handle(&mut self, event: Event) -> Vec<Effect> {
        let effects = self.state.handle(event).into_iter();
        effects.filter(|effect| !matches!(effect, Effect::EmitEvent(..))).collect()
    }

    fn ask(&mut self, verb: AgentCommand) -> Vec<Effect> {
        self.next += 1;
        let fresh = ContextNo(i64::try_from(self.next).unwrap() + 100);
        let (id, settings, now, ticks) = (self.next, self.settings.clone(), self.now, self.ticks);
        self.handle(Event::Request(Box::new(Request {
            meta: RequestMeta { id, settings, conversation: None, now, ticks, new_context: fresh },
            command: verb,
        })))
    }

    fn append(&mut self, text: &str) -> Vec<Effect> {
        self.ask(AgentCommand::Append { messages: vec![stored(Role::User, text)], key: None })
    }

    fn complete_append(&mut self, messages: u64) -> Vec<Effect> {
        self.handle(Event::Appended(Ok(AppendOutcome::Added(AppendResult {
            appended: 1,
            messages,
            secrets_found: None,
            note: None,
        }))))
    }

    fn append_durably(&mut self, texts: &[&str]) {
        for (index, text) in texts.iter().enumerate() {
            self.append(text);
            self.complete_append(index as u64 + 1);
        }
    }

    fn texts(&mut self) -> Vec<String> {
        match only_reply(self.ask(AgentCommand::ReadPage {
            pick: PageRange::Last(u64::MAX),
            budget: PageBudget::from_max_frame(usize::MAX),
        })) {
            Ok(CommandOutcome::Page(ContextPage { messages, .. })) => {
                messages.iter().map(|message| message.to_message().unwrap().content).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn complete_write(&mut self, draft: &SessionDraft) -> Vec<Effect> {
        self.handle(Event::SessionWritten(Ok(sample_session(draft).into())))
    }
}

fn stored(role: Role, text: &str) -> StoredMessage {
    let message = NewMessage::text(role, text).complete(|| text.to_owned(), Timestamp::UNIX_EPOCH);
    StoredMessage::new(&message).unwrap()
}

fn only_reply(mut effects: Vec<Effect>) -> Result<CommandOutcome, Error> {
    assert_eq!(effects.len(), 1, "{effects:?}");
    match effects.pop() {
        Some(Effect::Reply(_, result)) => result,
        other => panic!("{other:?}"),
    }
}

fn replied_to(effects: &[Effect]) -> Vec<RequestId> {
    effects.iter().filter_map(|e| if let Effect::Reply(id, _) = e { Some(*id) } else { None }).collect()
}

fn only_draft(mut effects: Vec<Effect>) -> Box<SessionDraft> {
    match effects.pop() {
        Some(Effect::WriteSession(draft)) => draft,
        other => panic!("{other:?}"),
    }
}

fn save_command() -> AgentCommand {
    AgentCommand::Save { description: None, tags: Vec::new(), clear: false }
}

fn test_error() -> Error {
    Error::disk_full()
}

#[test]
fn a_message_is_in_the_context_when_the_journal_has_it() {
    let mut bench = Fixture::new();
    let effects = bench.append("one");
    let [Effect::Append(append)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((append.first_record, append.head.context), (0, ContextNo(101)));
    let half_an_hour = Ticks(0).after(Duration::from_secs(1800));
    let at = "2026-02-12T10:30:00Z".parse().unwrap();
    assert_eq!(append.deadline, Some(Deadline { due: half_an_hour, at }));
    assert!(bench.state.context().is_none());
    assert!(matches!(only_reply(bench.complete_append(1)), Ok(CommandOutcome::Appended(_))));
    assert_eq!(bench.texts(), ["one"]);
}

#[test]
fn appends_flow_and_keep_their_order() {
    let mut bench = Fixture::new();
    let first = bench.append("one");
    let second = bench.append("two");
    let ([Effect::Append(first)], [Effect::Append(second)]) = (&first[..], &second[..]) else { panic!() };
    assert_eq!(first.head, second.head, "both begin the same context");
    assert_eq!((first.first_record, second.first_record), (0, 1));
    assert_eq!(replied_to(&bench.complete_append(1)), [1]);
    assert_eq!(replied_to(&bench.complete_append(2)), [2]);
    assert_eq!(bench.texts(), ["one", "two"]);
}

#[test]
fn an_append_that_fails_leaves_nothing() {
    let mut bench = Fixture::new();
    bench.append("lost");
    bench.append("kept");
    assert!(only_reply(bench.handle(Event::Appended(Err(test_error())))).is_err());
    bench.complete_append(1);
    assert_eq!(bench.texts(), ["kept"]);
    let mut bench = Fixture::new();
    bench.append("lost");
    bench.handle(Event::Appended(Err(test_error())));
    assert!(bench.state.is_empty());
}

#[test]
fn a_known_key_adds_nothing() {
    let mut bench = Fixture::new();
    bench.append("again");
    let answer = AppendResult { appended: 1, messages: 9, secrets_found: None, note: None };
    let effects = bench.handle(Event::Appended(Ok(AppendOutcome::Duplicate(answer.clone()))));
    assert!(matches!(only_reply(effects), Ok(CommandOutcome::Appended(given)) if given == answer));
    assert!(bench.state.is_empty());
}

#[test]
fn a_save_waits_for_the_appends_before_it_and_keeps_those_after_it_out() {
    let mut bench = Fixture::new();
    bench.append("one");
    assert!(bench.ask(save_command()).is_empty());
    assert!(!bench.state.accepts_requests());
    let effects = bench.complete_append(1);
    assert_eq!(effects.len(), 2, "the answer to the append, then the save");
    let draft = only_draft(effects);
    assert_eq!((draft.totals.messages, draft.trigger), (1, Trigger::ManualSave));
    assert!(!bench.state.accepts_requests());
    assert!(matches!(
        only_reply(bench.complete_write(&draft)),
        Ok(CommandOutcome::Saved(SavedContext { cleared: false, .. }))
    ));
    assert!(bench.state.accepts_requests());
    assert_eq!(bench.state.context().unwrap().unsaved(), 0);
    assert_eq!(bench.texts(), ["one"]);
}

#[test]
fn an_empty_context_is_nothing_to_save() {
    let failure = only_reply(Fixture::new().ask(save_command())).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::NothingToSave);
}

#[test]
fn a_save_that_fails_changes_nothing() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one"]);
    bench.ask(AgentCommand::Save { description: None, tags: Vec::new(), clear: true });
    assert_eq!(only_reply(bench.handle(Event::SessionWritten(Err(test_error())))).unwrap_err(), test_error());
    assert_eq!(bench.texts(), ["one"]);
    assert_eq!(bench.state.context().unwrap().unsaved(), 1);
}

#[test]
fn save_and_clear_ends_the_context() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one"]);
    let draft = only_draft(bench.ask(AgentCommand::Save { description: None, tags: Vec::new(), clear: true }));
    assert!(matches!(bench.complete_write(&draft)[..], [Effect::EndContext(ContextNo(101))]));
    assert!(matches!(
        only_reply(bench.handle(Event::ContextEnded(Ok(())))),
        Ok(CommandOutcome::Saved(SavedContext { cleared: true, .. }))
    ));
    assert!(bench.state.is_empty());
}

#[test]
fn clear_says_how_many_went_and_a_failed_one_keeps_them() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one", "two"]);
    bench.ask(AgentCommand::Clear { save: false });
    assert!(only_reply(bench.handle(Event::ContextEnded(Err(test_error())))).is_err());
    assert_eq!(bench.texts().len(), 2);
    bench.ask(AgentCommand::Clear { save: false });
    match only_reply(bench.handle(Event::ContextEnded(Ok(())))) {
        Ok(CommandOutcome::Cleared(result)) => assert_eq!(result.discarded, 2),
        other => panic!("{other:?}"),
    }
    match only_reply(bench.ask(AgentCommand::Clear { save: true })) {
        Ok(CommandOutcome::Cleared(result)) => assert_eq!((result.discarded, result.saved), (0, None)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_next_context_begins_anew() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one", "two"]);
    bench.ask(AgentCommand::Clear { save: false });
    bench.handle(Event::ContextEnded(Ok(())));
    let effects = bench.append("three");
    let [Effect::Append(append)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(append.first_record, 0);
    assert_ne!(append.head.context, ContextNo(101));
}

fn restore_command(discard: bool) -> AgentCommand {
    let messages = vec![stored(Role::User, "old"), stored(Role::Assistant, "answer")];
    let working_set = WorkingSet::default();
    AgentCommand::Restore(Box::new(Restore {
        session: Uuid::from_u128(5),
        session_id: "old".into(),
        messages,
        appended: Vec::new(),
        working_set,
        restoration: TokenPair { input: 120, output: 15 },
        discard,
    }))
}

#[test]
fn restore_saves_what_is_unsaved_first() {
    let mut bench = Fixture::new();
    bench.append_durably(&["new"]);
    let draft = only_draft(bench.ask(restore_command(false)));
    assert_eq!(draft.trigger, Trigger::Restore);
    let effects = bench.complete_write(&draft);
    let [Effect::ReplaceWithSession { old: Some(ContextNo(101)), new, session, totals, .. }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((*session, new.parent, totals.messages), (Uuid::from_u128(5), Some(Uuid::from_u128(5)), 2));
    match only_reply(bench.handle(Event::ContextReplaced(Ok(())))) {
        Ok(CommandOutcome::Restored(RestoredContext { messages: 2, saved_first: Some(_) })) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.texts(), ["old", "answer"]);
    assert_eq!(bench.state.context().unwrap().unsaved(), 0);
    let effects = bench.append("on");
    let [Effect::Append(append)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(append.first_record, 3, "the reference, the working set and what resuming cost stand before it");
}

#[test]
fn restore_with_discard_and_of_a_saved_context_saves_nothing() {
    let mut bench = Fixture::new();
    bench.append_durably(&["new"]);
    assert!(matches!(bench.ask(restore_command(true))[..], [Effect::ReplaceWithSession { .. }]));
    bench.handle(Event::ContextReplaced(Ok(())));
    assert!(matches!(bench.ask(restore_command(false))[..], [Effect::ReplaceWithSession { .. }]));
}

#[test]
fn a_restore_may_bring_messages_that_are_in_no_session() {
    let mut bench = Fixture::new();
    let AgentCommand::Restore(mut merged) = restore_command(false) else { panic!() };
    merged.appended = vec![stored(Role::Assistant, "account")];
    let effects = bench.ask(AgentCommand::Restore(merged));
    let [Effect::ReplaceWithSession { totals, appended: added, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((totals.messages, added.len()), (2, 1));
    bench.handle(Event::ContextReplaced(Ok(())));
    let context = bench.state.context().unwrap();
    assert_eq!((context.totals.messages, context.unsaved(), context.has_unsaved_changes()), (3, 1, true));
    let effects = bench.append("on");
    let [Effect::Append(append)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(append.first_record, 4, "behind the reference, the working set, what resuming cost and the account");
}

#[test]
fn a_restore_that_fails_keeps_the_context() {
    let mut bench = Fixture::new();
    bench.append_durably(&["new"]);
    bench.ask(restore_command(true));
    assert!(only_reply(bench.handle(Event::ContextReplaced(Err(test_error())))).is_err());
    assert_eq!(bench.texts(), ["new"]);
}

#[test]
fn putting_away_saves_only_what_is_unsaved() {
    let mut bench = Fixture::new();
    let shutdown = || AgentCommand::SaveIfUnsaved { trigger: Trigger::Shutdown, end: false };
    assert!(matches!(only_reply(bench.ask(shutdown())), Ok(CommandOutcome::SavedIfUnsaved(None))));
    bench.append_durably(&["one"]);
    let draft = only_draft(bench.ask(shutdown()));
    assert_eq!(draft.trigger, Trigger::Shutdown);
    assert!(matches!(only_reply(bench.complete_write(&draft)), Ok(CommandOutcome::SavedIfUnsaved(Some(_)))));
    assert!(matches!(only_reply(bench.ask(shutdown())), Ok(CommandOutcome::SavedIfUnsaved(None))));
    assert_eq!(bench.texts(), ["one"]);
    assert!(matches!(
        bench.ask(AgentCommand::SaveIfUnsaved { trigger: Trigger::Destroy, end: true })[..],
        [Effect::EndContext(_)]
    ));
}

#[test]
fn a_reference_is_written_out_only_for_its_session() {
    let mut bench = Fixture::new();
    bench.ask(restore_command(false));
    bench.handle(Event::ContextReplaced(Ok(())));
    assert!(matches!(
        only_reply(bench.ask(AgentCommand::Materialise(Uuid::from_u128(6)))),
        Ok(CommandOutcome::Materialised)
    ));
    let effects = bench.ask(AgentCommand::Materialise(Uuid::from_u128(5)));
    assert!(matches!(&effects[..], [Effect::Materialise { context, .. }] if context.messages.len() == 2));
    bench.handle(Event::MessagesMaterialised(Ok(())));
    assert_eq!(bench.state.context().unwrap().base_session, None);
    let effects = bench.append("on");
    assert!(matches!(&effects[..], [Effect::Append(append)] if append.first_record == 4));
}

#[test]
fn a_held_agent_takes_nothing_until_it_is_let_go() {
    let mut bench = Fixture::new();
    assert!(matches!(only_reply(bench.ask(AgentCommand::Hold { ends_turn: None })), Ok(CommandOutcome::Held)));
    assert!(!bench.state.accepts_requests() && !bench.state.is_empty());
    assert!(bench.handle(Event::HoldReleased).is_empty());
    assert!(bench.state.accepts_requests() && bench.state.is_empty());
}

#[test]
fn a_context_that_cannot_be_read_back_can_be_cleared_or_replaced() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one"]);
    let context = bench.state.context().unwrap().clone();
    let unreadable = || State::unreadable(context.clone(), Error::internal("gone"));
    bench.state = unreadable();
    for verb in [
        save_command(),
        restore_command(false),
        AgentCommand::ReadPage { pick: PageRange::Last(1), budget: PageBudget::from_max_frame(usize::MAX) },
        AgentCommand::Clear { save: true },
    ] {
        assert_eq!(only_reply(bench.ask(verb)).unwrap_err().message, "gone");
    }
    assert_eq!(only_reply(bench.append("two")).unwrap_err().message, "gone");
    assert!(matches!(bench.ask(AgentCommand::Clear { save: false })[..], [Effect::EndContext(_)]));
    bench.state = unreadable();
    assert!(matches!(bench.ask(restore_command(true))[..], [Effect::ReplaceWithSession { .. }]));
    bench.handle(Event::ContextReplaced(Ok(())));
    assert_eq!(bench.texts(), ["old", "answer"]);
}

#[test]
fn events_that_nobody_waits_for_are_dropped() {
    let mut bench = Fixture::new();
    bench.append_durably(&["one"]);
    for event in [
        Event::Appended(Err(test_error())),
        Event::SessionWritten(Err(test_error())),
        Event::ContextEnded(Ok(())),
        Event::ContextReplaced(Ok(())),
        Event::MessagesMaterialised(Ok(())),
        Event::HoldReleased,
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
        StoredMessage::parse(json.into()).unwrap()
    };
    let messages = [
        stored(Role::User, "q"),
        StoredMessage::parse(call.into()).unwrap(),
        result("c1"),
        result("c2"),
        stored(Role::Assistant, "a"),
    ];
    let cuts: Vec<usize> = (0..=6).map(|at| complete_calls_prefix(&messages, at)).collect();
    assert_eq!(cuts, [0, 1, 1, 1, 4, 5, 5]);
    let twice = [
        stored(Role::User, "q"),
        StoredMessage::parse(call.replace("c2", "c1").into()).unwrap(),
        result("c1"),
        result("c1"),
    ];
    let cuts: Vec<usize> = (0..=4).map(|at| complete_calls_prefix(&twice, at)).collect();
    assert_eq!(cuts, [0, 1, 1, 1, 4], "one result answers one call");
}
