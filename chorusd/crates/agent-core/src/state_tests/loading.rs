//! Tests of a large context whose first messages are still being loaded.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_session::stored_message::Totals;

use super::*;
use crate::context::Context;
use crate::context::context_from_head;
use crate::effect::ContextHead;

/// Texts of the whole context.
const TEXTS: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

/// Number of messages that are loaded first.
const TAIL_MESSAGES: usize = 2;

fn context_of(texts: &[&str]) -> Context {
    let (context, agent, started_at) = (ContextNo(7), Uuid::from_u128(1), Timestamp::UNIX_EPOCH);
    let messages: Vec<_> = texts.iter().map(|text| stored(Role::User, text)).collect();
    let (totals, messages) = (Totals::count(&messages), Arc::new(messages));
    Context {
        totals,
        messages,
        ..context_from_head(&ContextHead { context, agent, started_at, deadline: None, parent: None })
    }
}

fn whole_context() -> Context {
    context_of(&TEXTS)
}

fn loading_fixture(set_known: bool) -> Fixture {
    let tail = Context { totals: whole_context().totals, ..context_of(&TEXTS[TEXTS.len() - TAIL_MESSAGES..]) };
    Fixture { state: State::partially_loaded(tail, 6, set_known), ..Fixture::new() }
}

fn complete_load(bench: &mut Fixture, result: Result<Context>) -> Vec<Effect> {
    bench.handle(Event::ContextLoaded(Box::new(result)))
}

fn read_page_command(pick: PageRange) -> AgentCommand {
    AgentCommand::ReadPage { pick, budget: PageBudget::from_max_frame(usize::MAX) }
}

/// Returns the texts of the page in the only reply, and where the next page begins.
fn only_page(effects: Vec<Effect>) -> (Vec<String>, Option<u64>) {
    match only_reply(effects) {
        Ok(CommandOutcome::Page(ContextPage { messages, next, info, .. })) => {
            assert!(info.is_some());
            (messages.iter().map(|message| message.to_message().unwrap().content).collect(), next)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_last_page_is_shown_before_the_first() {
    let mut bench = loading_fixture(true);
    assert_eq!(only_page(bench.ask(read_page_command(PageRange::Last(2)))), (vec!["five".into(), "six".into()], None));
    assert_eq!(only_page(bench.ask(read_page_command(PageRange::Last(1)))), (vec!["six".into()], None));
    assert_eq!(
        only_page(bench.ask(read_page_command(PageRange::From { offset: 4, limit: 1 }))),
        (vec!["five".into()], Some(5))
    );
    assert_eq!(only_page(bench.ask(read_page_command(PageRange::From { offset: 9, limit: 1 }))), (vec![], None));
    assert!(bench.state.accepts_requests() && bench.state.is_loading() && !bench.state.is_quiescent());
    for pick in [PageRange::Last(3), PageRange::From { offset: 3, limit: 1 }] {
        let mut bench = loading_fixture(true);
        assert!(bench.ask(read_page_command(pick)).is_empty());
        assert!(!bench.state.accepts_requests(), "later requests wait behind it");
        let expected = if pick == PageRange::Last(3) { vec!["four", "five", "six"] } else { vec!["four"] };
        assert_eq!(only_page(complete_load(&mut bench, Ok(whole_context()))).0, expected);
        assert!(bench.state.accepts_requests() && !bench.state.is_loading() && bench.state.is_quiescent());
    }
}

#[test]
fn a_page_waits_where_the_working_set_is_not_known() {
    let mut bench = loading_fixture(false);
    assert!(bench.ask(read_page_command(PageRange::Last(1))).is_empty());
    assert_eq!(only_page(complete_load(&mut bench, Ok(whole_context()))).0, ["six"]);
}

#[test]
fn what_is_added_meanwhile_comes_behind_what_there_was() {
    let mut bench = loading_fixture(true);
    let effects = bench.append("seven");
    let [Effect::Append(append)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((append.first_record, append.head.context), (6, ContextNo(7)));
    assert!(matches!(only_reply(bench.complete_append(7)), Ok(CommandOutcome::Appended(_))));
    assert_eq!(only_page(bench.ask(read_page_command(PageRange::Last(3)))).0, ["five", "six", "seven"]);
    // This one is pending while the first messages are loaded.
    bench.append("eight");
    // Messages that an earlier rewind took out cannot be brought back over messages that were appended since.
    let mut rewound = context_of(&["one", "two", "three", "four", "five", "six", "gone"]);
    rewound.rewind(6);
    assert!(complete_load(&mut bench, Ok(rewound)).is_empty());
    bench.complete_append(8);
    assert_eq!(bench.texts(), ["one", "two", "three", "four", "five", "six", "seven", "eight"]);
    let context = bench.state.context().unwrap();
    assert_eq!((context.totals.messages, context.first_in_memory(), context.rewound.len()), (8, 0, 0));
    assert_eq!(context.deadline.map(|deadline| deadline.due), Some(Ticks(0).after(Duration::from_secs(1800))));
}

#[test]
fn a_save_waits_for_all_and_has_all() {
    let mut bench = loading_fixture(true);
    bench.append("seven");
    bench.complete_append(7);
    assert!(bench.ask(save_command()).is_empty());
    assert!(!bench.state.accepts_requests());
    let draft = only_draft(complete_load(&mut bench, Ok(whole_context())));
    assert_eq!((draft.totals.messages, draft.messages.len()), (7, 7));
}

#[test]
fn a_rewind_waits_for_all() {
    let mut bench = loading_fixture(true);
    assert!(bench.ask(AgentCommand::Rewind { turns: 5 }).is_empty());
    let effects = complete_load(&mut bench, Ok(whole_context()));
    assert!(matches!(&effects[..], [Effect::RecordEdit(change)] if change.totals.messages == 1), "{effects:?}");
}

#[test]
fn what_cannot_be_read_is_told_to_all_and_ends_the_appends() {
    let mut bench = loading_fixture(true);
    bench.append("seven");
    bench.append("eight");
    bench.complete_append(7);
    assert!(bench.ask(save_command()).is_empty());
    // Without the filter of the fixture, because observers get a notice.
    let effects = bench.state.handle(Event::ContextLoaded(Box::new(Err(test_error()))));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::EmitEvent(chorus_proto::EventType::Notice, _))));
    assert!(!bench.state.is_unreadable_and_idle(), "an append still waits for its reply, and the save for its refusal");
    let effects = bench.complete_append(8);
    assert_eq!(replied_to(&effects), [2, 3], "{effects:?}");
    assert!(matches!(&effects[1], Effect::Reply(3, Err(failure)) if *failure == test_error()));
    assert!(bench.state.is_unreadable_and_idle());
    assert_eq!(only_reply(bench.append("nine")).unwrap_err(), test_error());
    assert_eq!(bench.state.context().unwrap().totals.messages, 8);
}
