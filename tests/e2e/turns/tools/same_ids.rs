//! Calls of one answer that a provider gave one id: each has its own result, in the record, in the window and after a crash.

use chorus_proto::{Client, EventType};
use chorus_tests::chat::Chat as _;
use chorus_tests::model_server::Answer;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::{Value, json};

use super::super::{MODELS, Rig, assert_legal, send};
use super::{configure, results};
use crate::events::events;

/// Calls with these ids and commands.
fn bash(calls: &[(&str, &str)]) -> Answer {
    calls.iter().fold(Answer::empty(), |answer, (id, command)| answer.call(id, "bash", &json!({"command": command})))
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

/// What was told of calls: `started same`, `finished same`.
fn told(client: &mut Client) -> Vec<String> {
    let word = |kind| match kind {
        EventType::ToolStarted => Some("started"),
        EventType::ToolFinished => Some("finished"),
        _ => None,
    };
    let one = |event: chorus_proto::Event| Some(format!("{} {}", word(event.kind)?, event.data["id"].as_str()?));
    events(client, 0).into_iter().filter_map(one).collect()
}

#[test]
fn each_has_its_own_result_in_the_order_of_the_calls() {
    for model in MODELS {
        let rig = Rig::on(model);
        let mut client = rig.client();
        configure(&mut client, "permissions", "open");
        // Beside each other the second would end before the first.
        let calls =
            [("same", "sleep 0.2; touch x; echo first"), ("same", "test -e x && echo second"), ("other", "echo third")];
        rig.answer(bash(&calls));
        rig.say("Done.");
        send(&mut client, "Go.").expect("a turn");
        let kept = results(&mut client);
        let ids: Vec<_> = kept.iter().filter_map(|result| result.tool_call_id.as_deref()).collect();
        let said: Vec<_> = kept.iter().filter_map(|result| result.content.lines().next()).collect();
        assert_eq!((ids, said), (vec!["same", "same", "other"], vec!["first", "second", "third"]));
        assert_legal(&client.shown("a"));
        rig.wait_for(EventType::ToolFinished, 3);
        let in_turn =
            ["started same", "finished same", "started same", "finished same", "started other", "finished other"];
        assert_eq!(told(&mut client), in_turn);
        // The provider is shown ids that differ, and what belongs to each.
        let (calls, results) = pairs(&rig.server.requests()[1].body);
        assert_eq!(calls, ["same", "same-2", "other"]);
        for ((id, said), (wanted, word)) in
            results.iter().zip([("same", "first"), ("same-2", "second"), ("other", "third")])
        {
            assert!(id == wanted && said.contains(word), "{results:?}");
        }
        assert_eq!(results.len(), 3);
    }
}

#[test]
fn after_a_crash_only_the_one_that_ran_is_unknown() {
    for model in MODELS {
        let rig = Rig::on(model);
        configure(&mut rig.client(), "permissions", "open");
        rig.answer(bash(&[("same", "echo first"), ("same", "exec sleep 8641")]));
        let turn = rig.send_beside("Go.");
        wait_until("the first result", DEADLINE, || (results(&mut rig.client()).len() == 1).then_some(()));
        rig.wait_for(EventType::ToolStarted, 2);
        let rig = rig.crash();
        assert!(turn.join().expect("the client").is_err());
        rig.wait_for(EventType::TurnInterrupted, 1);
        let mut client = rig.client();
        let kept = results(&mut client);
        let said: Vec<_> = kept.iter().filter_map(|result| result.content.lines().next()).collect();
        assert_eq!(said, ["first", "interrupted, outcome unknown"]);
        assert_legal(&client.shown("a"));
        rig.say("I look.");
        send(&mut client, "And now?").expect("a turn");
        let (calls, results) = pairs(&rig.server.requests()[1].body);
        let ids: Vec<&str> = results.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!((calls.as_slice(), ids), (&["same".to_owned(), "same-2".to_owned()][..], vec!["same", "same-2"]));
    }
}
