//! Messages that arrive during a turn.

use chorus_proto::methods::agent::{Config, ConfigParams, Destroy, DestroyParams};
use chorus_proto::methods::send::{Cancel, CancelParams, Progress, SendParams, TurnEvent};
use chorus_proto::{CallError, ErrorKind, EventType};
use chorus_tests::Fixture;
use chorus_tests::client_ext::expect_error_kind;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};

use super::{params, record, start_fixture};

#[test]
fn each_has_its_own_turn_in_the_order_of_arrival() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    fixture.answer(Response::text(["first"]).gate("go"));
    for n in 0..5 {
        fixture.reply(&format!("answer {n}"));
    }
    let first = fixture.spawn_send("a", "zero");
    fixture.models().wait_for_gate("go");
    let others: Vec<_> = (0..5).map(|n| fixture.spawn_send("a", &format!("message {n}"))).collect();
    assert_eq!(record(&mut client).len(), 1, "nothing comes between");
    fixture.models().open_gate("go");
    first.join().expect("the client").expect("a turn");
    for other in others {
        other.join().expect("the client").expect("a turn");
    }
    let said = record(&mut client);
    assert_eq!(said.len(), 12);
    let mut asked: Vec<&str> = said.iter().step_by(2).map(|(_, text)| text.as_str()).collect();
    let answered: Vec<&str> = said.iter().skip(1).step_by(2).map(|(_, text)| text.as_str()).collect();
    assert_eq!(answered, ["first", "answer 0", "answer 1", "answer 2", "answer 3", "answer 4"]);
    asked[1..].sort_unstable();
    assert_eq!(asked, ["zero", "message 0", "message 1", "message 2", "message 3", "message 4"]);
}

#[test]
fn one_that_waits_goes_on_when_the_one_before_it_is_cancelled() {
    let fixture = start_fixture();
    fixture.answer(Response::empty().gate("never"));
    fixture.reply("Second.");
    let first = fixture.spawn_send("a", "one");
    fixture.models().wait_for_gate("never");
    let second = fixture.spawn_send("a", "two");
    let mut client = fixture.client();
    let params = CancelParams { conversation: None, agent: Some("a".into()), turn_id: None };
    let ended = client.call::<Cancel>(&params).expect("send.cancel").turn_id;
    assert!(ended.is_some() && first.join().expect("the client").is_err());
    assert_eq!(second.join().expect("the client").expect("a turn").reply, "Second.");
    wait_until("both messages", DEADLINE, || (record(&mut client).len() == 3).then_some(()));
}

/// A message beside the test, and what is told of it: its turn as soon as it waits.
fn waiting(fixture: &Fixture, text: &str) -> (uuid::Uuid, std::thread::JoinHandle<ErrorKind>) {
    let (mut client, params) = (fixture.client(), SendParams { stream: true, ..params(text) });
    let (say, said) = std::sync::mpsc::sync_channel(64);
    let sending = std::thread::spawn(move || {
        let mut heard = |progress: &serde_json::value::RawValue| -> Result<(), CallError> {
            let progress: Progress = serde_json::from_str(progress.get())?;
            if let TurnEvent::Queued { turn_id: Some(turn), .. } = progress.said {
                let _ = say.send(turn);
            }
            Ok(())
        };
        expect_error_kind(client.call_streaming("send", &params, &mut heard))
    });
    (said.recv_timeout(DEADLINE).expect("it waits"), sending)
}

#[test]
fn one_that_waits_is_taken_back_by_its_id_and_leaves_nothing() {
    let fixture = start_fixture();
    fixture.answer(Response::text(["Whole."]).gate("go"));
    let first = fixture.spawn_send("a", "one");
    fixture.models().wait_for_gate("go");
    let (turn, second) = waiting(&fixture, "two");
    let mut client = fixture.client();
    let cancel = CancelParams { conversation: None, agent: Some("a".into()), turn_id: Some(turn) };
    assert_eq!(client.call::<Cancel>(&cancel).expect("send.cancel").turn_id, Some(turn));
    assert_eq!(second.join().expect("the client"), ErrorKind::Interrupted);
    assert_eq!(client.call::<Cancel>(&cancel).expect("send.cancel").turn_id, None, "it is gone");
    fixture.models().open_gate("go");
    first.join().expect("the client").expect("a turn");
    assert_eq!(record(&mut client).len(), 2);
    assert_eq!(fixture.models().requests().len(), 1);
}

#[test]
fn an_agent_that_is_destroyed_says_so_to_whoever_waits() {
    let fixture = start_fixture();
    fixture.answer(Response::text(["Half"]).gate("never"));
    let first = fixture.spawn_send("a", "one");
    fixture.models().wait_for_gate("never");
    let (_, second) = waiting(&fixture, "two");
    let mut client = fixture.client();
    let rename = ConfigParams { name: "a".into(), key: Some("name".into()), value: Some("b".into()) };
    assert_eq!(expect_error_kind(client.call::<Config>(&rename)), ErrorKind::Busy, "its place stays in a turn");
    let params = DestroyParams { name: "a".into(), ..Default::default() };
    let saved = client.call::<Destroy>(&params).expect("destroyed").saved.expect("a session");
    assert_eq!(saved.header.message_count, 2);
    assert_eq!(expect_error_kind(first.join().expect("the client")), ErrorKind::Interrupted);
    assert_eq!(second.join().expect("the client"), ErrorKind::AgentNotFound);
    let told = &fixture.wait_for_events(EventType::TurnInterrupted, 1)[0].data;
    assert_eq!(told["reason"], "the agent was destroyed during the turn");
}
