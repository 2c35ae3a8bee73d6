//! Bench: building the next request from a context of 100,000 messages, compared with 1,000; and a compaction by rules,
//! compared with parsing the messages that leave the window.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::compaction::{CompactionMode, plan_compaction};
use chorus_agent_core::effect::CallModel;
use chorus_agent_core::state::State;
use chorus_engine::agent::model_limits::ModelLimits;
use chorus_engine::agent::request_builder::{BuildOutcome, build_request};
use chorus_proto::{NewMessage, Role, WorkingSet};
use chorus_session::stored_message::StoredMessage;
use chorus_tests::measure::{measure_paired, print_report, time, use_realtime_scheduler};

const LONG_MESSAGES: usize = 100_000;
const SHORT_MESSAGES: usize = 1000;
const ROUNDS: usize = 51;

/// Targets for the window of 100,000 messages and for the compaction of 1,000.
const WINDOW_TARGET: Duration = Duration::from_millis(2);
const COMPACTION_TARGET: Duration = Duration::from_millis(100);

/// Creates messages of the usual length of transcripts, some of which contain decisions.
fn create_messages(count: usize) -> Arc<Vec<StoredMessage>> {
    let message = |n: usize| {
        let role = if n.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let text = format!(
            "The nightly import dropped rows in src/load_{n}.py. We decided on plan {n}. The test of part {n} is still to do. {}",
            "The country of every row is looked at, and kept where it is empty. ".repeat(5)
        );
        let made = NewMessage::text(role, text).complete(|| format!("m{n}"), jiff::Timestamp::UNIX_EPOCH);
        StoredMessage::new(&made).expect("serialises")
    };
    Arc::new((0..count).map(message).collect())
}

/// Creates a model call without compaction, as after an undo: all messages may be in the window.
fn model_call(record: &Arc<Vec<StoredMessage>>) -> CallModel {
    let facts = Arc::new(AgentSettings::default());
    CallModel {
        messages: record.clone(),
        turn_start: record.len(),
        compaction_mode: CompactionMode::Off,
        ..State::default().next_call(&facts)
    }
}

fn time_window(record: &Arc<Vec<StoredMessage>>) -> Duration {
    let accepts = ModelLimits { tokens: Some(200_000), ..ModelLimits::default() };
    time(|| match build_request(&model_call(record), None, &Vec::new(), accepts) {
        BuildOutcome::Prompt(prompt) => assert_eq!(black_box(prompt).request.messages.len(), 50),
        BuildOutcome::NeedsCompaction(plan) => panic!("{plan:?}"),
    })
}

/// Compacts all messages except the last twenty.
fn time_compaction(record: &[StoredMessage]) -> Duration {
    let set = WorkingSet::default();
    time(|| {
        let plan = plan_compaction(record, (0, usize::MAX), &set, 15_000, CompactionMode::IfLong).expect("a plan");
        assert_eq!(plan.upto, record.len() - 20);
        black_box(plan.compact_by_rules(record, &set, None));
    })
}

fn time_parsing(record: &[StoredMessage]) -> Duration {
    time(|| record.iter().for_each(|message| drop(black_box(message.to_message()))))
}

fn print_verdict(what: &str, took: Duration, most: Duration) {
    print_report(format_args!("{what}: {took:.3?} of {most:?}, {}", if took <= most { "met" } else { "MISSED" }));
}

fn main() {
    use_realtime_scheduler();
    let (long, short) = (create_messages(LONG_MESSAGES), create_messages(SHORT_MESSAGES));
    let windows = measure_paired(
        "window of 100,000 messages, against 1,000",
        1.5,
        ROUNDS,
        || time_window(&short),
        || time_window(&long),
    );
    print_report(&windows);
    print_verdict("window of 100,000 messages", windows.ours, WINDOW_TARGET);
    let compactions = measure_paired(
        "compaction of 1,000 messages, against reading",
        f64::INFINITY,
        ROUNDS,
        || time_parsing(&short),
        || time_compaction(&short),
    );
    print_report(&compactions);
    print_verdict("compaction of 1,000 messages by rules", compactions.ours, COMPACTION_TARGET);
}
