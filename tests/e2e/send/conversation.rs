//! Conversations that go as they should.

use chorus_proto::methods::context::{Save, SaveParams};
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_proto::{EventType, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, RawConnection, wait_until};
use serde_json::{Value, json};

use super::{MODELS, assert_legal, hear, listen, record, send, start_fixture, start_with_model};

#[test]
fn a_conversation_goes_through_either_wire_format() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let mut client = fixture.client();
        fixture.answer(Response::text(["Hel", "lo."]).usage(12, 3));
        let first = send(&mut client, "Hi!").expect("a turn");
        assert_eq!(
            (first.reply.as_str(), first.usage.input_tokens, first.usage.output_tokens),
            ("Hello.", Some(12), Some(3))
        );
        fixture.reply("You said hi.");
        let second = send(&mut client, "What did I say?").expect("a turn");
        assert_ne!(first.turn_id, second.turn_id);
        use Role::{Assistant, User};
        let said = [(User, "Hi!"), (Assistant, "Hello."), (User, "What did I say?"), (Assistant, "You said hi.")];
        assert_eq!(record(&mut client), said.map(|(role, text)| (role, text.to_owned())));
        let body = fixture.models().requests()[1].body.to_string();
        for (_, text) in &said[..3] {
            assert!(body.contains(text), "the second call is sent the whole conversation: {body}");
        }
        assert_eq!(client.messages("a")[1].usage.as_ref().and_then(|usage| usage.input_tokens), Some(12));
    }
}

#[test]
fn tools_are_called_until_the_model_has_its_answer() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let mut client = fixture.client();
        fixture.answer(Response::text(["I look."]).then_call("c1", "list_models", &json!({})).then_call(
            "c2",
            "list_models",
            &json!({}),
        ));
        fixture.answer(Response::tool_call("c3", "no_such_tool", &json!({"a": 1})));
        fixture.answer(Response::text(["There are two."]).usage(7, 2));
        let result = send(&mut client, "Which models are there?").expect("a turn");
        assert_eq!(result.reply, "There are two.");
        assert_eq!(result.tool_calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["c1", "c2", "c3"]);
        assert_eq!(result.usage.input_tokens, Some(10 + 10 + 7));
        let shown = client.messages("a");
        assert_legal(&shown);
        let results: Vec<_> = shown.iter().filter(|message| message.role == Role::ToolResult).collect();
        assert!(!results[0].is_error && results[2].is_error && results[2].content.contains("list_models"));
        // What the model is sent has them too, in its own form.
        let body = fixture.models().requests()[2].body.to_string();
        assert!(body.contains("unknown tool") && body.contains("c3"), "{body}");
        // The answer does not wait for the news of it.
        fixture.wait_for_events(EventType::TurnFinished, 1);
        let kinds: Vec<EventType> = client.events(0).into_iter().map(|event| event.kind).collect();
        let count = |kind| kinds.iter().filter(|known| **known == kind).count();
        assert_eq!((count(EventType::ToolStarted), count(EventType::ToolFinished)), (3, 3));
        assert_eq!((count(EventType::TurnStarted), count(EventType::TurnFinished)), (1, 1));
    }
}

#[test]
fn observers_hear_what_is_said_while_it_is_said() {
    let fixture = start_fixture();
    let mut listener = listen(&fixture);
    fixture.answer(Response::text(["One, "]).gate("half").then_text("two."));
    let turn = fixture.spawn_send("a", "Count!");
    hear(&mut listener, "One, ");
    fixture.models().open_gate("half");
    hear(&mut listener, "two.");
    assert_eq!(turn.join().expect("the client").expect("a turn").reply, "One, two.");
    let kept = fixture.client().events(0);
    assert!(kept.iter().all(|event| event.kind != EventType::TurnDelta), "what is only passing is not kept");
}

#[test]
fn a_client_that_goes_away_does_not_end_the_turn() {
    let fixture = start_fixture();
    fixture.answer(Response::text(["Still "]).gate("gone").then_text("here."));
    let client = fixture.client();
    let stream = std::os::unix::net::UnixStream::connect(fixture.home.socket()).expect("a connection");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "send", "params": {"agent": "a", "text": "Are you there?"}});
    chorus_proto::frame::write(&mut &stream, body.to_string().as_bytes(), 1 << 20).expect("sent");
    fixture.models().wait_for_gate("gone");
    drop(stream);
    fixture.models().open_gate("gone");
    fixture.wait_for_events(EventType::TurnFinished, 1);
    let mut client = client;
    assert_eq!(record(&mut client)[1].1, "Still here.");
}

#[test]
fn the_place_of_a_client_that_went_away_is_free_before_the_turn_ends() {
    let fixture = start_fixture();
    fixture.answer(Response::text(["Still "]).gate("gone").then_text("here ").gate("end").then_text("now."));
    let mut client = fixture.client();
    let mut gone = RawConnection::connect(&fixture.home.socket());
    let params = json!({"agent": "a", "text": "Are you there?", "stream": true});
    gone.send_frame(json!({"jsonrpc": "2.0", "id": 1, "method": "send", "params": params}).to_string());
    fixture.models().wait_for_gate("gone");
    drop(gone);
    fixture.models().open_gate("gone");
    fixture.models().wait_for_gate("end");
    wait_until("one connection to be left", DEADLINE, || {
        let status = client.call::<Status>(&StatusParams::default()).expect("the status");
        (status.daemon.connections == 1).then_some(())
    });
    fixture.models().open_gate("end");
    fixture.wait_for_events(EventType::TurnFinished, 1);
}

#[test]
fn a_client_that_reads_late_hears_everything_in_order_and_then_the_answer() {
    let fixture = start_fixture();
    let mut late = RawConnection::connect(&fixture.home.socket());
    // More than its socket holds.
    let pieces = (0..2_000).map(|n| format!("{n} {}\n", "word ".repeat(200)));
    fixture.answer(Response::text(pieces));
    let params = json!({"agent": "a", "text": "Tell me all.", "stream": true});
    late.send_frame(json!({"jsonrpc": "2.0", "id": 1, "method": "send", "params": params}).to_string());
    fixture.wait_for_events(EventType::TurnFinished, 1);
    let (mut heard, mut pieces) = (String::new(), 0);
    let reply = loop {
        let frame = late.receive_json();
        if let Some(result) = frame.get("result") {
            break result["reply"].as_str().expect("a reply").to_owned();
        }
        assert_eq!(frame["method"], "progress", "{frame}");
        heard.push_str(frame["params"]["text"].as_str().unwrap_or_default());
        pieces += 1;
    };
    assert!(heard == reply && reply.ends_with("word \n"), "{} of {} bytes", heard.len(), reply.len());
    assert!(pieces < 1_500, "what was said while nobody read comes in longer pieces: {pieces}");
}

#[test]
fn the_prompt_has_the_notes_and_the_pinned_facts() {
    let fixture = start_fixture();
    std::fs::write(fixture.home.agent_dir("a").join("docs/plan.md"), "Ship on Friday.\n").expect("a note");
    let mut client = fixture.client();
    let pin = chorus_proto::methods::context::PinParams {
        conversation: None,
        agent: Some("a".into()),
        fact: "The customer is Ada.".into(),
    };
    client.call::<chorus_proto::methods::context::Pin>(&pin).expect("pinned");
    fixture.reply("Understood.");
    send(&mut client, "Remember.").expect("a turn");
    let body = &fixture.models().requests()[0].body;
    let system = body["system"].to_string();
    assert!(system.contains("Ship on Friday.") && system.contains("The customer is Ada."), "{body}");
    let tools: Vec<&Value> = body["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    for tool in ["list_models", "view", "bash"] {
        assert!(tools.contains(&&json!(tool)), "{tools:?}");
    }
}

#[test]
fn a_turn_may_be_saved_in_its_middle_and_appends_wait_for_open_calls() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    fixture.answer(Response::text(["Thinking"]).gate("saved").then_text(" done."));
    let turn = fixture.spawn_send("a", "Go.");
    fixture.models().wait_for_gate("saved");
    let save = SaveParams { agent: Some("a".into()), ..Default::default() };
    assert_eq!(client.call::<Save>(&save).expect("saved").session.header.message_count, 1);
    client.append("a", "By the way.");
    fixture.models().open_gate("saved");
    turn.join().expect("the client").expect("a turn");
    let said: Vec<String> = record(&mut client).into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["Go.", "By the way.", "Thinking done."]);
    assert_eq!(client.agent_status("a").context.expect("live").unsaved, 2);
}

#[test]
fn thinking_is_kept_and_goes_back_to_its_own_provider_only() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    fixture.answer(Response::empty().thinking("Hmm.", "sig-1").then_text("Four."));
    send(&mut client, "Two and two?").expect("a turn");
    fixture.reply("Yes.");
    send(&mut client, "Sure?").expect("a turn");
    assert!(fixture.models().requests()[1].body.to_string().contains("sig-1"));
    let config = chorus_proto::methods::agent::ConfigParams {
        name: "a".into(),
        key: Some("model".into()),
        value: Some("local/small".into()),
    };
    client.call::<chorus_proto::methods::agent::Config>(&config).expect("another model");
    fixture.models().openai().queue_text(["Also."]);
    send(&mut client, "And you?").expect("a turn");
    let body = fixture.models().requests()[2].body.to_string();
    assert!(body.contains("Four.") && !body.contains("sig-1"), "{body}");
}
