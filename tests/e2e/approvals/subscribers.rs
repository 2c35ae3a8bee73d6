//! Whoever comes while a question is open hears it: by the key of the turn, behind it in the queue, and as `chat`.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use chorus_proto::CallError;
use chorus_proto::methods::approvals::Status;
use chorus_proto::methods::send::{Progress, SendParams, TurnEvent};
use chorus_tests::Fixture;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, InteractiveCommand};

use super::{approve, ask, calls_of, decisions, open, queue_calls, start_fixture};

/// A message of `a` beside the test, and what is told of its turn.
fn streamed(fixture: &Fixture, text: &str, key: &str) -> (Receiver<TurnEvent>, JoinHandle<Result<(), CallError>>) {
    let (mut client, stream) = (fixture.client(), true);
    let params =
        SendParams { agent: Some("a".into()), text: text.into(), key: Some(key.into()), stream, ..Default::default() };
    let (say, said) = sync_channel(64);
    let sending = std::thread::spawn(move || {
        let mut heard = |progress: &serde_json::value::RawValue| -> Result<(), CallError> {
            let _ = say.send(serde_json::from_str::<Progress>(progress.get())?.said);
            Ok(())
        };
        client.call_streaming("send", &params, &mut heard).map(drop)
    });
    (said, sending)
}

#[test]
fn who_comes_with_its_key_or_waits_behind_it_hears_the_question_and_its_answer() {
    let fixture = start_fixture();
    queue_calls(&fixture, 1);
    let (_said, first) = streamed(&fixture, "Which are there?", "k");
    let asked = open(&mut fixture.client(), 1).remove(0);
    let ask = TurnEvent::Ask { approval: Box::new(asked.clone()) };
    let decided = TurnEvent::Decided { id: asked.id.clone(), status: Status::Approved, by: Some("owner".into()) };
    let (late, second) = streamed(&fixture, "Which are there?", "k");
    let started = TurnEvent::Started { turn_id: asked.turn_id };
    assert_eq!([late.recv_timeout(DEADLINE), late.recv_timeout(DEADLINE)], [Ok(started), Ok(ask.clone())]);
    fixture.models().anthropic().queue_text(["Next."]);
    let (waiting, third) = streamed(&fixture, "And now?", "l");
    assert!(matches!(waiting.recv_timeout(DEADLINE), Ok(TurnEvent::Queued { before: 1, .. })));
    assert_eq!(waiting.recv_timeout(DEADLINE), Ok(ask));
    approve(&mut fixture.client(), &asked.id).expect("heard");
    for sending in [first, second, third] {
        sending.join().expect("a client").expect("a turn");
    }
    assert!(late.iter().any(|said| said == decided));
    let told: Vec<TurnEvent> = waiting.iter().collect();
    assert_eq!(told[0], decided);
    assert!(matches!(told[1], TurnEvent::Started { turn_id } if turn_id != asked.turn_id), "{told:?}");
    assert!(!told.contains(&TurnEvent::Text("Done.".into())), "the rest is of others: {told:?}");
}

#[test]
fn chat_says_that_something_waits_and_asks_whoever_is_behind_it() {
    let fixture = start_fixture();
    let (_, turn) = ask(&fixture, 1);
    fixture.models().anthropic().queue(Response::text(["Mine."]));
    let mut command = fixture.home.command(fixture.home.bins.chorusctl);
    command.args(["--agent", "a", "chat"]);
    let mut running = InteractiveCommand::on_terminal(&command);
    running.stdout.wait_for("1 pending approval: /approvals");
    running.stdout.wait_for_end("a> \r\u{1b}[3C\u{1b}[?2026l");
    running.type_and_wait("And?\r", "Allow? ");
    running.type_and_wait("y\r", "Mine.");
    turn.join().expect("the client").expect("a turn");
    running.stdout.wait_for_end("a> \r\u{1b}[3C\u{1b}[?2026l");
    running.type_text("\u{4}");
    assert_eq!(running.wait_for_exit().0.code(), Some(0));
    assert_eq!(decisions(&fixture), ["ask", "approved"]);
}

#[test]
fn ids_are_completed() {
    let fixture = start_fixture();
    fixture.models().anthropic().queue(calls_of(1));
    fixture.models().anthropic().queue(Response::text(["Done."]));
    let turn = fixture.spawn_send("a", "Which are there?");
    let id = open(&mut fixture.client(), 1).remove(0).id;
    for verb in ["approve", "deny"] {
        assert_eq!(crate::docs::generated::named(&fixture.home, &["approvals", verb, &id[..3]]), [&*id]);
    }
    chorusctl(&fixture.home, ["approvals", "deny", &id]).expect_success();
    turn.join().expect("the client").expect("a turn");
}

#[test]
fn who_waits_hears_the_questions_of_every_turn_before_its_own() {
    let fixture = start_fixture();
    queue_calls(&fixture, 1);
    let (_said, first) = streamed(&fixture, "Which are there?", "k");
    let asked = open(&mut fixture.client(), 1).remove(0);
    queue_calls(&fixture, 1);
    let (behind, second) = streamed(&fixture, "And now?", "l");
    assert!(matches!(behind.recv_timeout(DEADLINE), Ok(TurnEvent::Queued { before: 1, .. })));
    let (waiting, third) = streamed(&fixture, "And last?", "m");
    assert!(matches!(waiting.recv_timeout(DEADLINE), Ok(TurnEvent::Queued { before: 2, .. })));
    fixture.models().anthropic().queue_text(["Last."]);
    assert_eq!(waiting.recv_timeout(DEADLINE), Ok(TurnEvent::Ask { approval: Box::new(asked.clone()) }));
    approve(&mut fixture.client(), &asked.id).expect("heard");
    let decided = |id: &str| TurnEvent::Decided { id: id.into(), status: Status::Approved, by: Some("owner".into()) };
    assert_eq!(waiting.recv_timeout(DEADLINE), Ok(decided(&asked.id)));
    // The second turn has begun; the third still waits, and hears what is asked in it.
    let next = open(&mut fixture.client(), 1).remove(0);
    assert_ne!((next.turn_id, &next.id), (asked.turn_id, &asked.id));
    assert_eq!(waiting.recv_timeout(DEADLINE), Ok(TurnEvent::Ask { approval: Box::new(next.clone()) }));
    approve(&mut fixture.client(), &next.id).expect("heard");
    assert_eq!(waiting.recv_timeout(DEADLINE), Ok(decided(&next.id)));
    for sending in [first, second, third] {
        sending.join().expect("a client").expect("a turn");
    }
}
