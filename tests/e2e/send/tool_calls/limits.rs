//! How much a turn may call.

use chorus_proto::EventType;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use serde_json::{Value, json};

use super::super::{MODELS, assert_legal, send, start_fixture, start_with_model};
use super::{configure, results};

/// Whether a request says that no tool may be called; all are shown in any case.
fn no_calls(body: &Value) -> bool {
    assert!(!body["tools"].as_array().expect("tools").is_empty());
    body["tool_choice"] == "none" || body["tool_choice"]["type"] == "none"
}

#[test]
fn fifty_calls_of_a_turn_run_and_the_others_are_answered() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let mut client = fixture.client();
        let mut many = Response::empty();
        for n in 0..200 {
            many = many.then_call(&format!("m{n}"), "create_file", &json!({"path": format!("{n}"), "content": "x"}));
        }
        fixture.answer(many);
        fixture.reply("That was a lot.");
        assert_eq!(send(&mut client, "Make them all.").expect("a turn").reply, "That was a lot.");
        let told = results(&mut client);
        let made: Vec<_> = told.iter().filter(|result| !result.is_error).collect();
        assert_eq!((told.len(), made.len()), (200, 50));
        let over = "the limit of 50 tool calls per turn is reached; answer now";
        assert!(told.iter().filter(|result| result.is_error).all(|result| result.content == over));
        let workspace = fixture.home.agent_dir("a").join("workspace");
        assert_eq!((0..200).filter(|n| workspace.join(n.to_string()).exists()).count(), 50);
        let requests = fixture.models().requests();
        assert_eq!(requests.iter().map(|request| no_calls(&request.body)).collect::<Vec<_>>(), [false, true]);
        assert!(requests[1].text.contains("limit of 50 tool calls"), "{}", requests[1].text);
        assert_legal(&client.messages("a"));
        // The next turn has its own.
        fixture.answer(Response::tool_call("c", "view", &json!({"path": "0"})));
        fixture.reply("An x.");
        send(&mut client, "And one more.").expect("a turn");
        assert!(!results(&mut client).pop().expect("a result").is_error);
    }
}

#[test]
fn after_five_failures_in_a_row_the_model_says_what_is_wrong() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let mut client = fixture.client();
        for n in 0..5 {
            fixture.answer(Response::tool_call(&format!("c{n}"), "view", &json!({"path": format!("no-{n}")})));
        }
        fixture.reply("I cannot find the file.");
        assert_eq!(send(&mut client, "Look at it.").expect("a turn").reply, "I cannot find the file.");
        let requests = fixture.models().requests();
        let asked: Vec<bool> = requests.iter().map(|request| no_calls(&request.body)).collect();
        assert_eq!(asked, [false, false, false, false, false, true]);
        assert!(requests[5].text.contains("5 tool calls in a row failed"));
        let errors = fixture.wait_for_events(EventType::ToolFinished, 5);
        assert_eq!(errors[4].data["error"], "no-4 does not exist");
    }
}

#[test]
fn of_one_answer_no_more_than_five_calls_fail_in_a_row() {
    // In their order, and beside each other.
    for (tool, good, bad) in [
        ("view", json!({"path": "there"}), json!({"path": "no"})),
        ("bash", json!({"command": "true"}), json!({"command": "echo x >> ran; exit 3"})),
    ] {
        for (goes_well, failed) in [(None, 5), (Some(3), 8)] {
            let fixture = start_fixture();
            let mut client = fixture.client();
            configure(&mut client, "permissions", "open");
            let workspace = fixture.home.agent_dir("a").join("workspace");
            std::fs::write(workspace.join("there"), "x").expect("a file");
            let params = |n| if goes_well == Some(n) { &good } else { &bad };
            fixture.answer(
                (0..50).fold(Response::empty(), |answer, n| answer.then_call(&format!("c{n}"), tool, params(n))),
            );
            fixture.reply("I cannot.");
            assert_eq!(send(&mut client, "Do it all.").expect("the turn goes on").reply, "I cannot.");
            let told = results(&mut client);
            let skipped = "not run: the previous 5 calls failed; answer now";
            let ran: Vec<_> = told.iter().filter(|result| result.content != skipped).collect();
            assert_eq!(told.len(), 50);
            // Beside each other the one that goes well may end before those ahead of it.
            let well = usize::from(goes_well.is_some());
            let fits = |count: usize| if tool == "view" { count == failed } else { (5..=failed + 1).contains(&count) };
            assert!(fits(ran.len() - well), "{tool}: {} ran", ran.len());
            assert!(told.iter().filter(|result| result.content == skipped).all(|result| result.is_error));
            if tool == "bash" {
                let lines = std::fs::read_to_string(workspace.join("ran")).expect("what ran").lines().count();
                assert_eq!(lines, ran.len() - well);
            }
            let requests = fixture.models().requests();
            assert_eq!(requests.iter().map(|request| no_calls(&request.body)).collect::<Vec<_>>(), [false, true]);
            assert!(requests[1].text.contains("5 tool calls in a row failed"));
            assert_legal(&client.messages("a"));
        }
    }
}
