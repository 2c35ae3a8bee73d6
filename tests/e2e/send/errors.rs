//! What goes wrong between the daemon and the model, and what the person reads.

use chorus_proto::methods::agent::{Config, ConfigParams, Init, InitParams};
use chorus_proto::{CallError, ErrorKind, Event, EventType, Role};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;
use serde_json::json;

use super::{
    MODELS, assert_legal, cancel, listen, params, record, send, start_fixture, start_with_keys, start_with_model,
};
use crate::home;

/// What happened and what to do.
fn told(result: Result<impl std::fmt::Debug, CallError>) -> (String, String) {
    match result {
        Err(CallError::Rpc(error)) => (error.message, error.data.and_then(|data| data.hint).expect("a hint")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_agent_without_a_model_says_so_before_anything_is_kept() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let (what, hint) = told(send(&mut client, "Hi!"));
    assert!(what.contains("has no model") && hint.contains("chorusctl models add local"), "{what}: {hint}");
    assert!(record(&mut client).is_empty());
}

#[test]
fn a_refused_key_is_told_and_harms_no_other_agent() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let mut client = fixture.client();
        fixture
            .answer(Response::error(401, r#"{"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#));
        let result = send(&mut client, "Hi!");
        assert_eq!(expect_error_kind(result), ErrorKind::ModelUnavailable);
        let other = MODELS.into_iter().find(|other| *other != model).expect("another");
        let params = InitParams { name: "b".into(), model: Some(other.into()), ..Default::default() };
        client.call::<Init>(&params).expect("agent.init");
        match other == MODELS[0] {
            true => fixture.models().anthropic().queue_text(["Fine."]),
            false => fixture.models().openai().queue_text(["Fine."]),
        }
        let sent = super::SendParams { agent: Some("b".into()), ..super::params("Hi!") };
        assert_eq!(client.call::<super::Send>(&sent).expect("a turn").reply, "Fine.");
        // What was said is in the record, and the next answer comes.
        fixture.reply("Here I am.");
        assert_eq!(send(&mut client, "And now?").expect("a turn").reply, "Here I am.");
        let users = record(&mut client).into_iter().filter(|(role, _)| *role == Role::User).count();
        assert_eq!(users, 2);
    }
}

#[test]
fn a_conversation_that_is_too_long_is_compacted_once() {
    let anthropic = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
    // BrokkAi/brokk-app#540: what litellm says by either wire.
    let litellm = r#"{"error":{"message":"litellm.BadRequestError: AnthropicException - b'{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 179413 + 32768 > 200000, decrease input length or `max_tokens` and try again\"}}'","type":null,"param":null,"code":"400"}}"#;
    for (model, too_long) in [(MODELS[0], anthropic), (MODELS[0], litellm), (MODELS[1], litellm)] {
        let fixture = start_with_model(model);
        let mut client = fixture.client();
        for n in 0..30 {
            client.append("a", &format!("note {n}"));
        }
        fixture.answer(Response::error(400, too_long));
        fixture.reply("Shorter is better.");
        assert_eq!(send(&mut client, "Sum up.").expect("a turn").reply, "Shorter is better.");
        let lengths: Vec<usize> = fixture.models().requests().iter().map(|request| request.text.len()).collect();
        assert!(lengths[1] < lengths[0], "{lengths:?}");
        let compacted = fixture.wait_for_events(EventType::ContextCompacted, 1).len();
        assert_eq!((compacted, record(&mut client).len()), (1, 32), "nothing is deleted");
        fixture.answer(Response::error(400, too_long));
        fixture.answer(Response::error(400, too_long));
        let (what, hint) = told(send(&mut client, "Again."));
        assert!(what.contains("long") && hint.contains("the largest part is tools"), "{what}: {hint}");
        assert_eq!(fixture.models().requests().len(), 4, "compacted once, then said");
    }
}

#[test]
fn a_server_that_loads_its_model_is_waited_for_and_the_wait_can_be_ended() {
    // mostlygeek/llama-swap#146.
    let loading =
        Response::error(503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#);
    let fixture = start_with_model(MODELS[1]);
    fixture.answer(loading.clone());
    fixture.reply("I am up.");
    let sent = chorusctl(&fixture.home, ["--agent", "a", "send", "Hello?"]);
    assert_eq!((sent.status, &*sent.stdout), (0, "I am up.\n"));
    assert!(sent.stderr.contains("the server local is loading the model, 0 s"), "{}", sent.stderr);
    fixture.models().openai().set_fallback(loading);
    let mut listener = listen(&fixture);
    let turn = fixture.spawn_send("a", "And now?");
    let mut waits = false;
    while !waits {
        let (_, params) = listener.next_notification().expect("a notification");
        let event: Event = serde_json::from_str(params.get()).expect("an event");
        waits = event.data["note"].as_str().is_some_and(|note| note.contains("is loading the model"));
    }
    assert!(cancel(&mut fixture.client()).is_some());
    assert_eq!(expect_error_kind(turn.join().expect("the client")), ErrorKind::Interrupted);
}

#[test]
fn a_stream_that_breaks_or_stalls_ends_the_turn_and_the_next_works() {
    for answer in [Response::text(["Half"]).disconnect(), Response::text(["Half"]).stall()] {
        let fixture = start_with_keys(MODELS[0], "idle_timeout = \"300ms\"");
        let mut client = fixture.client();
        fixture.answer(answer);
        assert_eq!(expect_error_kind(send(&mut client, "Talk.")), ErrorKind::Interrupted);
        assert_eq!(record(&mut client)[1], (Role::Assistant, "Half".to_owned()));
        fixture.reply("Whole.");
        assert_eq!(send(&mut client, "Go on.").expect("a turn").reply, "Whole.");
    }
}

#[test]
fn a_turn_whose_tool_ran_is_not_replayed() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    fixture.answer(Response::tool_call("c1", "list_models", &json!({})));
    for _ in 0..4 {
        fixture.answer(
            Response::error(529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#)
                .header("retry-after", "0"),
        );
    }
    assert_eq!(expect_error_kind(send(&mut client, "Look.")), ErrorKind::ModelUnavailable);
    let shown = client.messages("a");
    assert_legal(&shown);
    assert_eq!(shown.iter().filter(|message| message.role == Role::ToolResult).count(), 1);
    // One call with its answer, then at most four tries of the next.
    assert_eq!(fixture.models().requests().len(), 5);
    fixture.reply("Better now.");
    assert_eq!(send(&mut client, "And now?").expect("a turn").reply, "Better now.");
    assert_eq!(client.messages("a").iter().filter(|message| message.role == Role::ToolResult).count(), 1);
}

#[test]
fn odd_answers_leave_a_usable_context() {
    for model in MODELS {
        let fixture = start_with_model(model);
        fixture.models().enable_strict_mode();
        let mut client = fixture.client();
        fixture.answer(Response::empty());
        assert_eq!(send(&mut client, "Say nothing.").expect("a turn").reply, "");
        fixture.answer(Response::empty().then_call_text("c1", "list_models", "[1, 2"));
        fixture.reply("I will not.");
        send(&mut client, "Call it wrongly.").expect("a turn");
        let mut many = Response::text(["All of them."]);
        for n in 0..200 {
            many = many.then_call(&format!("m{n}"), "list_models", &json!({}));
        }
        fixture.answer(many);
        fixture.reply("That was a lot.");
        assert_eq!(send(&mut client, "Call it often.").expect("a turn").tool_calls.len(), 200);
        fixture.answer(Response::tool_call("d", "list_models", &json!({})).then_call("d", "list_models", &json!({})));
        fixture.reply("Twice the same.");
        send(&mut client, "Call it twice.").expect("a turn");
        assert_legal(&client.messages("a"));
        fixture.reply("Still here.");
        assert_eq!(send(&mut client, "Are you?").expect("a turn").reply, "Still here.");
    }
}

#[test]
fn a_model_that_calls_for_ever_is_stopped() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    fixture.models().anthropic().set_fallback(Response::tool_call("again", "list_models", &json!({})));
    let (what, _) = told(client.call::<super::Send>(&params("Go.")));
    assert!(what.contains("limit of 50 tool calls"), "{what}");
    assert_legal(&client.messages("a"));
    // Fifty answers that call, and one that was to call no more.
    assert_eq!(fixture.models().requests().len(), 51);
    fixture.reply("Enough.");
    assert_eq!(send(&mut client, "Stop.").expect("a turn").reply, "Enough.");
}

#[test]
fn a_cap_of_the_day_stops_before_the_call_and_before_anything_is_kept() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let config = |value: &str| ConfigParams {
        name: "a".into(),
        key: Some("daily_token_limit".into()),
        value: Some(value.into()),
    };
    client.call::<Config>(&config("10")).expect("a cap");
    fixture.answer(Response::text(["Short."]).usage(12, 3));
    send(&mut client, "One.").expect("a turn");
    let fixture = fixture.crash();
    let mut client = fixture.client();
    let (what, hint) = told(send(&mut client, "Two."));
    assert!(what.contains("15 tokens") && hint.contains("daily_token_limit"), "{what}: {hint}");
    chorusctl(&fixture.home, ["--agent", "a", "send", "Two."]).expect_failure_with_hint(6);
    assert_eq!((fixture.models().requests().len(), record(&mut client).len()), (1, 2));
    client.call::<Config>(&config("0")).expect("no cap");
    fixture.reply("Again.");
    assert_eq!(send(&mut client, "Two.").expect("a turn").reply, "Again.");
}

#[test]
fn a_message_that_is_sent_again_because_nobody_answered_it_is_there_once() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let refused =
        || Response::error(400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#);
    for _ in 0..2 {
        fixture.answer(refused());
        assert_eq!(expect_error_kind(send(&mut client, "Go.")), ErrorKind::ModelUnavailable);
    }
    fixture.reply("Gone.");
    send(&mut client, "Go.").expect("a turn");
    let due = [(Role::User, "Go.".to_owned()), (Role::Assistant, "Gone.".to_owned())];
    assert_eq!(record(&mut client), due);
    assert_eq!(fixture.models().requests()[2].text.matches("Go.").count(), 1);
    let fixture = fixture.crash();
    let mut client = fixture.client();
    assert_eq!(record(&mut client), due);
    // What was answered is another message, and so is what somebody said in between.
    fixture.answer(refused());
    assert_eq!(expect_error_kind(send(&mut client, "Go.")), ErrorKind::ModelUnavailable);
    client.append("a", "And be quick.");
    fixture.reply("Gone.");
    send(&mut client, "Go.").expect("a turn");
    let users = record(&mut client).into_iter().filter(|(role, _)| *role == Role::User).count();
    assert_eq!(users, 4);
}
