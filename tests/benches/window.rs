//! What the next request of a conversation of 100,000 messages costs to put together, against the same for one of 1,000; and what a
//! compaction by rules costs, against reading the messages that leave.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use chorus_proto::{NewMessage, Role, WorkingSet};
use chorus_tests::measure::{paired, report, time, undisturbed};
use chorusd::agent::Facts;
use chorusd::agent::accepts::Accepts;
use chorusd::agent::compaction::{Wish, plan};
use chorusd::agent::effect::CallModel;
use chorusd::agent::prepare::{Prepared, prepare};
use chorusd::agent::state::State;
use chorusd::message::Stored;

const LONG: usize = 100_000;
const SHORT: usize = 1000;
const ROUNDS: usize = 51;

/// Most that a window of 100,000 messages may take, and a compaction of 1,000.
const WINDOW: Duration = Duration::from_millis(2);
const COMPACTION: Duration = Duration::from_millis(100);

/// Messages of a length that is usual in transcripts, some of which decide something.
fn record(count: usize) -> Arc<Vec<Stored>> {
    let message = |n: usize| {
        let role = if n.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let text = format!(
            "The nightly import dropped rows in src/load_{n}.py. We decided on plan {n}. The test of part {n} is still to do. {}",
            "The country of every row is looked at, and kept where it is empty. ".repeat(5)
        );
        let made = NewMessage::text(role, text).complete(|| format!("m{n}"), jiff::Timestamp::UNIX_EPOCH);
        Stored::new(&made).expect("serialises")
    };
    Arc::new((0..count).map(message).collect())
}

/// A call whose window is not compacted, as after an undo: all messages may be shown.
fn call(record: &Arc<Vec<Stored>>) -> CallModel {
    let facts = Arc::new(Facts::default());
    CallModel { messages: record.clone(), opened: record.len(), wish: Wish::No, ..State::default().next_call(&facts) }
}

fn window(record: &Arc<Vec<Stored>>) -> Duration {
    let accepts = Accepts { tokens: Some(200_000), ..Accepts::default() };
    time(|| match prepare(&call(record), None, accepts) {
        Prepared::Prompt(prompt) => assert_eq!(black_box(prompt).request.messages.len(), 50),
        Prepared::Compacts(plan) => panic!("{plan:?}"),
    })
}

/// Of all messages but the last twenty.
fn compaction(record: &[Stored]) -> Duration {
    let set = WorkingSet::default();
    time(|| {
        let plan = plan(record, (0, usize::MAX), &set, 15_000, Wish::IfLong).expect("a plan");
        assert_eq!(plan.upto, record.len() - 20);
        black_box(plan.by_rules(record, &set, None));
    })
}

fn reading(record: &[Stored]) -> Duration {
    time(|| record.iter().for_each(|message| drop(black_box(message.to_message()))))
}

fn verdict(what: &str, took: Duration, most: Duration) {
    report(format_args!("{what}: {took:.3?} of {most:?}, {}", if took <= most { "met" } else { "MISSED" }));
}

fn main() {
    undisturbed();
    let (long, short) = (record(LONG), record(SHORT));
    let windows = paired("window of 100,000 messages, against 1,000", 1.5, ROUNDS, || window(&short), || window(&long));
    report(&windows);
    verdict("window of 100,000 messages", windows.ours, WINDOW);
    let compactions = paired(
        "compaction of 1,000 messages, against reading",
        f64::INFINITY,
        ROUNDS,
        || reading(&short),
        || compaction(&short),
    );
    report(&compactions);
    verdict("compaction of 1,000 messages by rules", compactions.ours, COMPACTION);
}
