//! Calls of one answer that a provider gave one id: each has its own result, in the record, in the window and after a crash.

use chorus_proto::EventType;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::{Value, json};

use super::super::{MODELS, assert_legal, send, start_with_model};
use super::{configure, results, told};

/// Calls with these ids and commands.
fn bash(calls: &[(&str, &str)]) -> Response {
    calls
        .iter()
        .fold(Response::empty(), |answer, (id, command)| answer.then_call(id, "bash", &json!({"command": command})))
}

/// Ids of the calls in a request, and of the results with what they say.
fn pairs(body: &Value) -> (Vec<String>, Vec<(String, String)>) {
    let text = |value: &Value| value.as_str().expect("an id").to_owned();
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for message in body["messages"].as_array().expect("messages") {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            calls.push(text(&call["id"]));
        }
        if message["role"] == "tool" {
            results.push((text(&message["tool_call_id"]), message["content"].to_string()));
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_use") => calls.push(text(&block["id"])),
                Some("tool_result") => results.push((text(&block["tool_use_id"]), block["content"].to_string())),
                _ => {}
            }
        }
    }
    (calls, results)
}

#[test]
fn each_has_its_own_result_whichever_ends_first() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let mut client = fixture.client();
        configure(&mut client, "permissions", "open");
        let waits = "until test -e x; do sleep 0.01; done; echo first";
        fixture.answer(bash(&[("same", waits), ("same", "echo second; touch x"), ("other", "echo third")]));
        fixture.reply("Done.");
        send(&mut client, "Go.").expect("a turn");
        let fits = |pairs: &[(String, String)]| {
            let said = |wanted: &str| pairs.iter().find(|(id, _)| id == wanted).expect("a result").1.clone();
            for (id, word) in [("same", "first"), ("same-2", "second"), ("other", "third")] {
                assert!(said(id).contains(word), "{id}: {pairs:?}");
            }
            assert_eq!(pairs.len(), 3);
        };
        let kept = results(&mut client).into_iter();
        fits(&kept.filter_map(|result| Some((result.tool_call_id?, result.content))).collect::<Vec<_>>());
        assert_legal(&client.messages("a"));
        fixture.wait_for_events(EventType::ToolFinished, 3);
        let mut told = told(&mut client);
        told.sort_unstable();
        let each = |word: &str| ["other", "same", "same-2"].map(|id| format!("{word} {id}"));
        assert_eq!(told, [each("finished"), each("started")].concat());
        let (calls, results) = pairs(&fixture.models().requests()[1].body);
        assert_eq!(calls, ["same", "same-2", "other"]);
        fits(&results);
    }
}

#[test]
fn after_a_crash_only_the_one_that_ran_is_unknown() {
    for model in MODELS {
        let fixture = start_with_model(model);
        configure(&mut fixture.client(), "permissions", "open");
        fixture.answer(bash(&[("same", "echo first"), ("same", "exec sleep 8641")]));
        let turn = fixture.spawn_send("a", "Go.");
        wait_until("the first result", DEADLINE, || (results(&mut fixture.client()).len() == 1).then_some(()));
        fixture.wait_for_events(EventType::ToolStarted, 2);
        let fixture = fixture.crash();
        assert!(turn.join().expect("the client").is_err());
        fixture.wait_for_events(EventType::TurnInterrupted, 1);
        let mut client = fixture.client();
        let kept = results(&mut client);
        let said: Vec<_> = kept.iter().filter_map(|result| result.content.lines().next()).collect();
        assert_eq!(said, ["first", "interrupted, outcome unknown"]);
        assert_legal(&client.messages("a"));
        fixture.reply("I look.");
        send(&mut client, "And now?").expect("a turn");
        let (calls, results) = pairs(&fixture.models().requests()[1].body);
        let ids: Vec<&str> = results.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!((calls.as_slice(), ids), (&["same".to_owned(), "same-2".to_owned()][..], vec!["same", "same-2"]));
    }
}
