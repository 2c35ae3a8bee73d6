//! Links of a chain.

use chorus_proto::{Receipt, TokenPair, Trigger, WorkingSet};
use uuid::Uuid;

use super::{Bench, draft, reply, stored};
use crate::agent::effect::Effect;
use crate::agent::event::{Compacts, Event, Reply, Resume, Verb};
use crate::message::ContextNo;

fn resume(session: u128, compacts: Option<u64>) -> Verb {
    Verb::Resume(Box::new(Resume {
        session: Uuid::from_u128(session),
        session_id: "2026-02-12_x".into(),
        working_set: WorkingSet::default(),
        acknowledgement: stored(chorus_proto::Role::Assistant, "I am ready."),
        cost: TokenPair { input: 7, output: 3 },
        compacts: compacts.map(|messages| Compacts { context: ContextNo(101), messages, receipt: Receipt::default() }),
    }))
}

#[test]
fn what_goes_on_while_a_compaction_is_prepared_is_not_left_behind() {
    let mut bench = Bench::new();
    bench.fill(&["one"]);
    let saved = draft(bench.ask(Verb::SaveToCompact));
    assert_eq!(saved.trigger, Trigger::Compact);
    bench.written(&saved);
    bench.append("two");
    bench.durable(2);
    assert!(matches!(reply(bench.ask(resume(77, Some(1)))), Ok(Reply::GoneOn { replaced: false })));
    assert_eq!(bench.texts(), ["one", "two"]);
    // Saved again, it goes on from all there is.
    let saved = draft(bench.ask(Verb::SaveToCompact));
    bench.written(&saved);
    bench.ask(Verb::Pin { id: "p".into(), text: "younger than the save".into() });
    bench.handle(Event::Changed(Ok(())));
    let effects = bench.ask(resume(77, Some(2)));
    let [Effect::Renew { new, working_set, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((new.parent, working_set.pinned_facts.len()), (Some(Uuid::from_u128(77)), 1));
    match reply(bench.handle(Event::Replaced(Ok(())))) {
        Ok(Reply::Compacted { receipt, messages: 1 }) => assert_eq!(receipt.pins, ["younger than the save"]),
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.texts(), ["I am ready."]);
}

#[test]
fn what_is_unsaved_is_saved_before_a_resume_and_its_cost_goes_with_the_next_save() {
    let mut bench = Bench::new();
    bench.fill(&["one"]);
    let first = draft(bench.ask(resume(5, None)));
    assert_eq!((first.trigger, first.messages.len()), (Trigger::Resume, 1));
    let effects = bench.written(&first);
    assert!(matches!(effects[..], [Effect::Renew { .. }]), "{effects:?}");
    let answer = reply(bench.handle(Event::Replaced(Ok(()))));
    assert!(matches!(answer, Ok(Reply::Restored { messages: 1, saved_first: Some(_) })), "{answer:?}");
    // Its records are the working set, the cost and the message.
    let effects = bench.append("two");
    assert!(matches!(&effects[..], [Effect::Append(append)] if append.first == 3), "{effects:?}");
    bench.durable(2);
    let next = draft(bench.ask(Verb::Save { description: None, tags: Vec::new(), clear: false }));
    assert_eq!((next.restoration, next.parent), (TokenPair { input: 7, output: 3 }, Some(Uuid::from_u128(5))));
}
