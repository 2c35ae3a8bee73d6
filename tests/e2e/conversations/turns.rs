//! Turns of several conversations of one agent.

use std::sync::mpsc;
use std::thread;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::approvals::{self, Approve, ApproveParams};
use chorus_proto::methods::send::{Cancel, CancelParams, Progress, SendParams, SendResult, TurnEvent};
use chorus_proto::methods::usage::{Show as Usage, UsageBy, UsageParams};
use chorus_proto::{CallError, ErrorKind, EventType};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, Fixture, wait_until};
use serde_json::json;

use super::{list, open, texts};
use crate::home;

fn fixture(conversations: usize) -> Fixture {
    let fixture = Fixture::builder(home()).models().start();
    fixture.create_agent("a", None);
    for n in 0..conversations {
        open(&mut fixture.client(), &format!("c{n}"));
    }
    fixture
}

fn limit(fixture: &Fixture, turns: usize) {
    let params =
        ConfigParams { name: "a".into(), key: Some("concurrent_turns".into()), value: Some(turns.to_string().into()) };
    fixture.client().call::<Config>(&params).expect("agent.config");
}

/// A turn in a conversation, with what is told of it.
struct Sent {
    turn: thread::JoinHandle<Result<SendResult, CallError>>,
    heard: mpsc::Receiver<TurnEvent>,
}

fn send(fixture: &Fixture, conversation: &str, text: &str) -> Sent {
    let params = SendParams {
        agent: Some("a".into()),
        conversation: Some(conversation.into()),
        text: text.into(),
        stream: true,
        ..Default::default()
    };
    let (mut client, (say, heard)) = (fixture.client(), mpsc::sync_channel(256));
    let turn = thread::spawn(move || {
        let mut hear = |progress: &serde_json::value::RawValue| -> Result<(), CallError> {
            let progress: Progress = serde_json::from_str(progress.get())?;
            let _ = say.send(progress.said);
            Ok(())
        };
        let result = client.call_streaming("send", &params, &mut hear)?;
        Ok(serde_json::from_str(result.get())?)
    });
    Sent { turn, heard }
}

#[test]
fn they_run_at_once_up_to_the_limit_and_then_in_order() {
    let fixture = fixture(4);
    limit(&fixture, 2);
    for n in 0..4 {
        fixture.answer(Response::text([format!("answer {n}")]).gate(&format!("go {n}")));
    }
    let first = send(&fixture, "c0", "zero");
    fixture.models().wait_for_gate("go 0");
    let second = send(&fixture, "c1", "one");
    fixture.models().wait_for_gate("go 1");
    let note = |sent: &Sent| {
        while let Ok(said) = sent.heard.recv_timeout(DEADLINE) {
            if let TurnEvent::Note(note) = said {
                return note;
            }
        }
        panic!("no note")
    };
    let third = send(&fixture, "c2", "two");
    assert_eq!(note(&third), "waiting: 2 turns of this agent are running (concurrent_turns)");
    let fourth = send(&fixture, "c3", "three");
    note(&fourth);
    assert_eq!(fixture.models().requests().len(), 2);
    fixture.models().open_gate("go 1");
    assert_eq!(second.turn.join().expect("the client").expect("a turn").reply, "answer 1");
    // The first that waited is the next to run.
    fixture.models().wait_for_gate("go 2");
    fixture.models().open_gate("go 2");
    assert_eq!(third.turn.join().expect("the client").expect("a turn").reply, "answer 2");
    fixture.models().wait_for_gate("go 3");
    fixture.models().open_gate("go 3");
    fourth.turn.join().expect("the client").expect("a turn");
    fixture.models().open_gate("go 0");
    first.turn.join().expect("the client").expect("a turn");
    let mut client = fixture.client();
    assert_eq!(texts(&mut client, "c2"), ["two", "answer 2"]);
    assert_eq!(texts(&mut client, "c0"), ["zero", "answer 0"]);
    assert!(client.messages("a").is_empty());
}

#[test]
fn one_that_waits_for_its_turn_is_shown_as_waiting_until_it_runs() {
    let fixture = fixture(1);
    limit(&fixture, 1);
    fixture.answer(Response::text(["Zero."]).gate("go 0"));
    fixture.answer(Response::text(["One."]).gate("go 1"));
    let first = send(&fixture, "c0", "zero");
    fixture.models().wait_for_gate("go 0");
    let second = send(&fixture, "main", "one");
    while !matches!(second.heard.recv_timeout(DEADLINE).expect("a note"), TurnEvent::Note(_)) {}
    let waits = || {
        let listed = list(&mut fixture.client(), false);
        listed.into_iter().map(|found| found.turn.map(|turn| turn.waits_for_slot)).collect::<Vec<_>>()
    };
    let states = |command: &[&str]| {
        let shown = chorusctl(&fixture.home, command).stdout;
        ["waiting", "running"].map(|state| shown.lines().filter(|line| line.contains(&format!(" {state} "))).count())
    };
    assert_eq!(waits(), [Some(true), Some(false)]);
    for command in [&["status"][..], &["conversations"]] {
        assert_eq!(states(command), [1, 1], "{command:?}");
    }
    let details = chorusctl(&fixture.home, ["status", "a"]).stdout;
    assert!(details.contains("waiting for other turns (concurrent_turns)"), "{details}");
    fixture.models().open_gate("go 0");
    first.turn.join().expect("the client").expect("a turn");
    fixture.models().wait_for_gate("go 1");
    assert_eq!((waits(), states(&["conversations"])), (vec![Some(false), None], [0, 1]));
    fixture.models().open_gate("go 1");
    second.turn.join().expect("the client").expect("a turn");
}

#[test]
fn one_that_waits_for_its_turn_can_be_cancelled_and_an_agent_destroyed() {
    let fixture = fixture(2);
    limit(&fixture, 1);
    fixture.answer(Response::empty().gate("never"));
    let first = send(&fixture, "c0", "zero");
    fixture.models().wait_for_gate("never");
    let second = send(&fixture, "c1", "one");
    while !matches!(second.heard.recv_timeout(DEADLINE).expect("a note"), TurnEvent::Note(_)) {}
    let mut client = fixture.client();
    let cancel = CancelParams { agent: Some("a".into()), conversation: Some("c1".into()), turn_id: None };
    assert!(client.call::<Cancel>(&cancel).expect("send.cancel").turn_id.is_some());
    assert_eq!(expect_error_kind(second.turn.join().expect("the client")), ErrorKind::Interrupted);
    let third = send(&fixture, "c1", "two");
    while !matches!(third.heard.recv_timeout(DEADLINE).expect("a note"), TurnEvent::Note(_)) {}
    let destroy = chorus_proto::methods::agent::DestroyParams { name: "a".into(), ..Default::default() };
    client.call::<chorus_proto::methods::agent::Destroy>(&destroy).expect("agent.destroy");
    for sent in [first, third] {
        assert_eq!(expect_error_kind(sent.turn.join().expect("the client")), ErrorKind::Interrupted);
    }
    assert_eq!(fixture.models().requests().len(), 1);
}

#[test]
fn usage_is_counted_by_conversation_too() {
    let fixture = fixture(2);
    for (conversation, output) in [("c0", 10), ("c1", 20), ("c0", 30)] {
        fixture.answer(Response::text(["Yes."]).usage(100, output));
        send(&fixture, conversation, "hello").turn.join().expect("the client").expect("a turn");
    }
    fixture.answer(Response::text(["Yes."]).usage(100, 5));
    fixture.send("a", "hello").expect("a turn");
    let used = |by| {
        let params = UsageParams { by, ..Default::default() };
        let used = fixture.client().call::<Usage>(&params).expect("usage");
        let mut rows: Vec<_> =
            used.days.into_iter().map(|row| (row.conversation, row.sums.calls, row.sums.output_tokens)).collect();
        rows.sort();
        (rows, used.total.output_tokens)
    };
    assert_eq!(used(None), (vec![(None, 4, 65)], 65));
    let named = |name: &str| Some(name.to_owned());
    let expected = vec![(named("c0"), 2, 40), (named("c1"), 1, 20), (named("main"), 1, 5)];
    assert_eq!(used(Some(UsageBy::Conversation)), (expected, 65));
    let shown = chorusctl(&fixture.home, ["usage", "--by", "conversation"]);
    assert!(shown.stdout.contains("CONVERSATION") && shown.stdout.contains("c1"), "{}", shown.stdout);
}

#[test]
fn a_message_in_one_does_not_wait_for_the_turn_of_another() {
    let fixture = fixture(1);
    fixture.answer(Response::text(["slow"]).gate("go"));
    fixture.reply("fast");
    let slow = send(&fixture, "c0", "slow?");
    fixture.models().wait_for_gate("go");
    assert_eq!(fixture.send("a", "fast?").expect("a turn").reply, "fast");
    let told = fixture.wait_for_events(EventType::TurnFinished, 1);
    assert_eq!(told[0].conversation, None);
    fixture.models().open_gate("go");
    slow.turn.join().expect("the client").expect("a turn");
    let told = fixture.wait_for_events(EventType::TurnFinished, 2);
    assert_eq!(told[1].conversation.as_deref(), Some("c0"));
}

#[test]
fn an_approval_says_which_conversation_asks_and_ends_with_that_turn_only() {
    let fixture = fixture(2);
    for n in 0..2 {
        let call = json!({"command": format!("touch file{n}")});
        fixture.answer(Response::tool_call("c", "bash", &call));
    }
    let first = send(&fixture, "c0", "zero");
    let asked = |count: usize| {
        wait_until("the questions", DEADLINE, || {
            let params = approvals::ListParams::default();
            let open = fixture.client().call::<approvals::List>(&params).expect("approvals.list").approvals;
            (open.len() == count).then_some(open)
        })
    };
    assert_eq!(asked(1)[0].conversation.as_deref(), Some("c0"));
    let second = send(&fixture, "c1", "one");
    let open = asked(2);
    assert_eq!(open[1].conversation.as_deref(), Some("c1"));
    // The one ends; the question of the other stays.
    let cancel = CancelParams { agent: Some("a".into()), conversation: Some("c0".into()), turn_id: None };
    fixture.client().call::<Cancel>(&cancel).expect("send.cancel");
    assert_eq!(expect_error_kind(first.turn.join().expect("the client")), ErrorKind::Interrupted);
    assert_eq!(asked(1)[0].id, open[1].id);
    fixture.reply("Done.");
    let approve = ApproveParams { id: open[1].id.clone(), ..Default::default() };
    fixture.client().call::<Approve>(&approve).expect("approvals.approve");
    second.turn.join().expect("the client").expect("a turn");
    assert!(fixture.workspace("a").join("file1").exists() && !fixture.workspace("a").join("file0").exists());
}

#[test]
fn what_a_background_task_came_to_is_told_where_it_was_started() {
    let fixture = fixture(1);
    let open_profile = ConfigParams { name: "a".into(), key: Some("permissions".into()), value: Some("open".into()) };
    fixture.client().call::<Config>(&open_profile).expect("agent.config");
    fixture.answer(Response::tool_call("c", "bash", &json!({"command": "echo done", "background": true})));
    fixture.reply("Started.");
    let sent = send(&fixture, "c0", "go");
    sent.turn.join().expect("the client").expect("a turn");
    wait_until("the notice", DEADLINE, || {
        texts(&mut fixture.client(), "c0").iter().any(|text| text.contains("Background task")).then_some(())
    });
    assert!(fixture.client().messages("a").is_empty());
    let told = fixture.wait_for_events(EventType::TaskFinished, 1);
    assert_eq!(told[0].conversation.as_deref(), Some("c0"));
}

#[test]
fn a_turn_that_waits_for_a_person_lets_others_run_and_goes_on_in_its_turn() {
    let fixture = fixture(3);
    limit(&fixture, 1);
    fixture.answer(Response::tool_call("c", "bash", &json!({"command": "touch made"})));
    let first = send(&fixture, "c0", "zero");
    let open = wait_until("the question", DEADLINE, || {
        let params = approvals::ListParams::default();
        fixture.client().call::<approvals::List>(&params).expect("approvals.list").approvals.pop()
    });
    fixture.reply("One.");
    assert_eq!(send(&fixture, "c1", "one").turn.join().expect("the client").expect("a turn").reply, "One.");
    // While another one runs, what was allowed waits.
    fixture.answer(Response::text(["Two."]).gate("go"));
    let third = send(&fixture, "c2", "two");
    fixture.models().wait_for_gate("go");
    let approve = ApproveParams { id: open.id, ..Default::default() };
    fixture.client().call::<Approve>(&approve).expect("approvals.approve");
    let waits = |said: TurnEvent| matches!(said, TurnEvent::Note(note) if note == "waiting: 1 turn of this agent is running (concurrent_turns)");
    while !waits(first.heard.recv_timeout(DEADLINE).expect("a note")) {}
    assert!(!fixture.workspace("a").join("made").exists());
    fixture.reply("Zero.");
    fixture.models().open_gate("go");
    assert_eq!(third.turn.join().expect("the client").expect("a turn").reply, "Two.");
    assert_eq!(first.turn.join().expect("the client").expect("a turn").reply, "Zero.");
    assert!(fixture.workspace("a").join("made").exists());
}
