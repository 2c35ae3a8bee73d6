//! When the calls of one answer run.

use std::fs;

use chorus_proto::methods::approvals::{Approval, Approve, ApproveParams, List, ListParams};
use chorus_proto::{Client, EventType};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::{Value, json};

use super::super::{MODELS, assert_legal, send, start_fixture, start_with_model};
use super::{called, configure, results, told};

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command}))
}

/// The one question that is open.
fn asked(client: &mut Client) -> Approval {
    let mut open = wait_until("a question", DEADLINE, || {
        let open = client.call::<List>(&ListParams::default()).expect("approvals.list").approvals;
        Some(open).filter(|open| !open.is_empty())
    });
    assert_eq!(open.len(), 1, "one question at a time: {open:?}");
    open.remove(0)
}

/// Waits until just these events are told. An event may be stored after the question that it precedes.
fn wait_until_told(client: &mut Client, expected: &[&str]) {
    wait_until("the events", DEADLINE, || (told(client) == expected).then_some(()));
}

fn approve(client: &mut Client, id: &str) {
    client.call::<Approve>(&ApproveParams { id: id.into(), ..Default::default() }).expect("approved");
}

#[test]
fn calls_that_nobody_is_asked_about_run_beside_each_other() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let mut client = fixture.client();
        configure(&mut client, "permissions", "open");
        // Neither ends before the other has begun.
        let waits = |mine: &str, other: &str| {
            bash(&format!("touch {mine}; until test -e {other}; do sleep 0.01; done; echo both"))
        };
        let told = called(&fixture, &mut client, &[waits("x", "y"), waits("y", "x")]);
        assert!(told.iter().all(|result| result.content == "both\n[exit status 0]"), "{told:?}");
        assert_legal(&client.messages("a"));
    }
}

#[test]
fn calls_beside_one_that_is_asked_about_run_in_their_order_and_are_told_when_they_begin() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let calls = [
        bash("test ! -e x && echo first"),
        ("create_file", json!({"path": "x", "content": "1\n"})),
        bash("cat x && echo 2 > x"),
        ("view", json!({"path": "x"})),
    ];
    let answer = calls.iter().enumerate().fold(Response::empty(), |answer, (number, (name, params))| {
        answer.then_call(&format!("c{number}"), name, params)
    });
    fixture.answer(answer);
    fixture.reply("Done.");
    let turn = fixture.spawn_send("a", "Go.");
    let first = asked(&mut client);
    assert_eq!(first.call_id, "c0");
    wait_until_told(&mut client, &["started c0"]);
    approve(&mut client, &first.id);
    let second =
        wait_until("the next question", DEADLINE, || Some(asked(&mut client)).filter(|asked| asked.id != first.id));
    let so_far = ["started c0", "finished c0", "started c1", "finished c1", "started c2"];
    assert_eq!(second.call_id, "c2");
    wait_until_told(&mut client, &so_far);
    approve(&mut client, &second.id);
    turn.join().expect("the client").expect("a turn");
    let results = results(&mut client);
    let texts: Vec<&str> = results.iter().map(|result| result.content.as_str()).collect();
    let ids: Vec<_> = results.iter().map(|result| result.tool_call_id.as_deref().expect("an id")).collect();
    assert_eq!(ids, ["c0", "c1", "c2", "c3"]);
    assert_eq!((texts[0], texts[2]), ("first\n[exit status 0]", "1\n[exit status 0]"));
    assert!(texts[3].contains("1\t2\n"), "{}", texts[3]);
    fixture.wait_for_events(EventType::ToolFinished, 4);
    assert_eq!(told(&mut client)[5..], ["finished c2", "started c3", "finished c3"]);
}

#[test]
fn two_hundred_commands_in_one_answer_are_fifty_and_leave_nothing_behind() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    configure(&mut client, "permissions", "open");
    client.set_timeout(Some(DEADLINE * 3)).expect("a time-out");
    let many = (0..200).fold(Response::empty(), |answer, number| {
        let (name, params) = bash(&format!("touch ran-{number}; echo {number}"));
        answer.then_call(&format!("m{number}"), name, &params)
    });
    fixture.answer(many);
    fixture.reply("That was a lot.");
    assert_eq!(send(&mut client, "Run them all.").expect("a turn").reply, "That was a lot.");
    let told = results(&mut client);
    let (ran, refused): (Vec<_>, Vec<_>) = told.iter().partition(|result| !result.is_error);
    assert_eq!((ran.len(), refused.len()), (50, 150), "{:?}", refused.first());
    for result in &ran {
        let number = result.tool_call_id.as_deref().expect("an id").trim_start_matches('m');
        assert_eq!(result.content, format!("{number}\n[exit status 0]"));
    }
    let workspace = fs::read_dir(fixture.home.agent_dir("a").join("workspace")).expect("the workspace").flatten();
    assert_eq!(workspace.filter(|entry| entry.file_name().to_string_lossy().starts_with("ran-")).count(), 50);
    assert_legal(&client.messages("a"));
}
