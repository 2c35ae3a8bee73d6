//! Keys: a message that is sent twice is one.

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::models::{ModelsParams, Validate};
use chorus_proto::methods::send::{Progress, Send, SendParams, TurnEvent};
use chorus_proto::{CallError, ErrorKind};
use chorus_tests::DEADLINE;
use chorus_tests::client_ext::expect_error_kind;
use chorus_tests::model_server::Response;

use super::{params, record, start_fixture};

fn keyed(text: &str) -> SendParams {
    SendParams { key: Some("k1".into()), ..params(text) }
}

#[test]
fn the_same_key_gives_the_first_answer_even_after_a_crash() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    fixture.reply("Once.");
    let first = client.call::<Send>(&keyed("Do it.")).expect("a turn");
    let again = client.call::<Send>(&keyed("Do it.")).expect("the first answer");
    assert_eq!((again.reply.as_str(), again.turn_id), ("Once.", first.turn_id));
    let fixture = fixture.crash();
    let again = fixture.client().call::<Send>(&keyed("Do it.")).expect("the first answer");
    assert_eq!(again.turn_id, first.turn_id);
    assert_eq!(record(&mut fixture.client()).len(), 2);
    assert_eq!(fixture.models().requests().len(), 1);
}

#[test]
fn the_same_key_waits_for_the_turn_that_runs() {
    let fixture = start_fixture();
    fixture.answer(Response::text(["On"]).gate("go").then_text("ce."));
    let send = || {
        let mut client = fixture.client();
        std::thread::spawn(move || client.call::<Send>(&keyed("Do it.")).expect("a turn"))
    };
    let first = send();
    fixture.models().wait_for_gate("go");
    let second = send();
    fixture.models().open_gate("go");
    let (first, second) = (first.join().expect("a client"), second.join().expect("a client"));
    assert_eq!((first.turn_id, first.reply.as_str()), (second.turn_id, "Once."));
    assert_eq!((fixture.models().requests().len(), record(&mut fixture.client()).len()), (1, 2));
}

#[test]
fn a_turn_that_was_cut_off_is_not_run_again_by_its_key() {
    let fixture = start_fixture();
    fixture.answer(Response::text(["On"]).gate("never"));
    let mut client = fixture.client();
    let cut = std::thread::spawn(move || client.call::<Send>(&keyed("Do it.")));
    fixture.models().wait_for_gate("never");
    let fixture = fixture.crash();
    assert!(cut.join().expect("a client").is_err());
    assert_eq!(expect_error_kind(fixture.client().call::<Send>(&keyed("Do it."))), ErrorKind::Interrupted);
    assert_eq!((fixture.models().requests().len(), record(&mut fixture.client()).len()), (1, 1));
}

#[test]
fn an_answer_that_was_given_is_given_again_where_no_turn_could_begin_any_more() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let set =
        |key: &str, value: &str| ConfigParams { name: "a".into(), key: Some(key.into()), value: Some(value.into()) };
    fixture.answer(Response::text(["Once."]).usage(12, 3));
    let first = client.call::<Send>(&keyed("Do it.")).expect("a turn");
    client.call::<Config>(&set("daily_token_limit", "10")).expect("a cap");
    assert_eq!(client.call::<Send>(&keyed("Do it.")).expect("the first answer").turn_id, first.turn_id);
    client.call::<Config>(&set("model", "local/large")).expect("another model");
    fixture.models().set_openai_models(200, &serde_json::json!({"object": "list", "data": []}));
    client.call::<Validate>(&ModelsParams {}).expect("models.validate");
    assert_eq!(client.call::<Send>(&keyed("Do it.")).expect("the first answer").turn_id, first.turn_id);
    assert_eq!(expect_error_kind(client.call::<Send>(&params("More."))), ErrorKind::ModelUnavailable);
}

#[test]
fn who_comes_in_the_middle_of_an_answer_is_given_it_whole() {
    let fixture = start_fixture();
    fixture.answer(Response::text(["On"]).gate("go").then_text("ce."));
    let streamed = |text: &'static str| {
        let (mut client, params) = (fixture.client(), SendParams { stream: true, ..keyed(text) });
        let (say, said) = std::sync::mpsc::sync_channel(64);
        let sending = std::thread::spawn(move || {
            let mut heard = |progress: &serde_json::value::RawValue| -> Result<(), CallError> {
                let _ = say.send(serde_json::from_str::<Progress>(progress.get())?.said);
                Ok(())
            };
            client.call_streaming("send", &params, &mut heard).map(drop)
        });
        (said, sending)
    };
    let (said, first) = streamed("Do it.");
    let TurnEvent::Started { turn_id } = said.recv_timeout(DEADLINE).expect("a beginning") else {
        panic!("no beginning")
    };
    fixture.models().wait_for_gate("go");
    let (said, second) = streamed("Do it.");
    assert_eq!(said.recv_timeout(DEADLINE), Ok(TurnEvent::Started { turn_id }), "so that it can be cancelled");
    fixture.models().open_gate("go");
    first.join().expect("a client").expect("a turn");
    second.join().expect("a client").expect("a turn");
    assert_eq!(said.iter().collect::<Vec<_>>(), [], "half an answer is none");
}
