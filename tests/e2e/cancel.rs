//! Turns that are ended by hand.

use chorus_proto::methods::context::{Clear, ClearParams, Rewind, RewindParams};
use chorus_proto::{ErrorKind, EventType, Role};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;

use crate::send::{MODELS, cancel, hear, listen, record, send, start_fixture, start_with_model};

#[test]
fn what_came_is_kept_and_the_next_turn_works() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let mut client = fixture.client();
        let mut listener = listen(&fixture);
        fixture.answer(Response::text(["Half a "]).gate("never").then_text("sentence."));
        let turn = fixture.spawn_send("a", "Talk.");
        hear(&mut listener, "Half a ");
        let ended = cancel(&mut client).expect("a turn was running");
        assert_eq!(expect_error_kind(turn.join().expect("the client")), ErrorKind::Interrupted);
        fixture.models().wait_for_hang_ups(1);
        assert_eq!(record(&mut client)[1], (Role::Assistant, "Half a ".to_owned()));
        assert!(client.messages("a")[1].interrupted);
        let shown = chorusctl(&fixture.home, ["context", "show"]).expect_success();
        assert!(shown.contains("· cut off"), "{shown}");
        let told = &fixture.wait_for_events(EventType::TurnInterrupted, 1)[0].data;
        assert_eq!(told["turn_id"], ended.to_string());
        fixture.reply("Whole.");
        assert_eq!(send(&mut client, "Again.").expect("a turn").reply, "Whole.");
        assert!(!client.messages("a")[3].interrupted);
        assert_eq!(cancel(&mut client), None);
    }
}

#[test]
fn anybody_ends_a_turn_from_the_command_line_and_sees_that_it_runs() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    assert_eq!(client.agent_status("a").turn, None);
    let none = chorusctl(&fixture.home, ["cancel", "a"]);
    assert_eq!(none.status, 5, "{}", none.stderr);
    for (gate, cancel) in [("first", &["cancel", "a"][..]), ("second", &["--agent", "a", "send", "--cancel"])] {
        fixture.answer(Response::text(["Half a "]).gate(gate).then_text("sentence."));
        let turn = fixture.spawn_send("a", "Talk.");
        fixture.models().wait_for_gate(gate);
        let waits = fixture.spawn_send("a", "Another.");
        let queued = || client.agent_status("a").turn.filter(|turn| turn.waiting == 1);
        let shown = chorus_tests::wait_until("the second turn", chorus_tests::DEADLINE, queued);
        assert_eq!(shown.step, 1);
        let table = chorusctl(&fixture.home, ["status"]).expect_success();
        assert!(table.contains("running "), "{table}");
        let details = chorusctl(&fixture.home, ["status", "a"]).expect_success();
        assert!(details.contains("step 1, ") && details.contains("1 waiting"), "{details}");
        fixture.reply("The other.");
        let said = chorusctl(&fixture.home, cancel.iter().copied()).expect_success();
        assert!(said.contains(&shown.turn_id.to_string()), "{said}");
        assert_eq!(expect_error_kind(turn.join().expect("the client")), ErrorKind::Interrupted);
        assert_eq!(waits.join().expect("the client").expect("it waited, and goes on").reply, "The other.");
    }
    let json = chorusctl(&fixture.home, ["--json", "cancel", "a"]);
    assert_eq!((json.status, json.stdout.trim()), (5, r#"{"turn_id":null}"#));
    let error: serde_json::Value = serde_json::from_str(&json.stderr).expect("an error as JSON");
    assert_eq!(
        (&error["error"]["kind"], &error["error"]["message"]),
        (&"nothing_to_do".into(), &"no turn is running".into())
    );
    assert_eq!(client.agent_status("a").turn, None);
}

#[test]
fn what_would_take_the_context_away_is_busy_meanwhile() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    fixture.answer(Response::text(["A"]).gate("end").then_text("B"));
    let turn = fixture.spawn_send("a", "Go.");
    fixture.models().wait_for_gate("end");
    let agent = || Some("a".to_owned());
    let clear = client.call::<Clear>(&ClearParams { conversation: None, agent: agent(), save: false });
    assert_eq!(expect_error_kind(clear), ErrorKind::Busy);
    let rewind = client.call::<Rewind>(&RewindParams { conversation: None, agent: agent(), n: None, undo: false });
    assert_eq!(expect_error_kind(rewind), ErrorKind::Busy);
    fixture.models().open_gate("end");
    assert_eq!(turn.join().expect("the client").expect("a turn").reply, "AB");
    client.call::<Clear>(&ClearParams { conversation: None, agent: agent(), save: false }).expect("cleared");
}
