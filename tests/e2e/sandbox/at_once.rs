//! How many commands run at once.

use std::fs;

use chorus_proto::Role;
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::chat::Chat as _;
use chorus_tests::model_server::Answer;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::{Value, json};

use super::Rig;

/// A turn with the same call so many times at once; what came of each.
fn all_at_once(rig: &Rig, count: usize, params: &Value) -> std::thread::JoinHandle<Vec<String>> {
    let calls = (0..count).fold(Answer::empty(), |answer, n| answer.call(&format!("c{n}"), "bash", params));
    rig.server.anthropic().answer(calls);
    rig.server.anthropic().answer(Answer::text(["Done."]));
    let mut client = rig.client();
    client.set_timeout(Some(DEADLINE * 3)).expect("a time-out");
    std::thread::spawn(move || {
        let params = SendParams { agent: Some("a".into()), text: "Go.".into(), ..Default::default() };
        client.call::<Send>(&params).expect("a turn");
        let messages = client.shown("a").into_iter();
        messages.filter(|message| message.role == Role::ToolResult).map(|message| message.content).collect()
    })
}

#[test]
fn eight_commands_of_an_agent_run_and_the_others_wait() {
    let rig = Rig::each().remove(0);
    let log = rig.workspace().join("log");
    let command = "echo begun >> log; until test -e go; do sleep 0.05; done; echo ended >> log";
    let turn = all_at_once(&rig, 16, &json!({"command": command}));
    let lines = || fs::read_to_string(&log).unwrap_or_default();
    wait_until("eight to begin", DEADLINE, || (lines().lines().count() >= 8).then_some(()));
    fs::write(rig.workspace().join("go"), "").expect("a sign");
    assert!(turn.join().expect("a client").iter().all(|told| told == "[exit status 0]"));
    let mut running = 0_usize;
    for line in lines().lines() {
        running = if line == "begun" { running + 1 } else { running - 1 };
        assert!(running <= 8, "{}", lines());
    }
    assert_eq!(lines().matches("begun").count(), 16);
}

#[test]
fn who_waits_too_long_never_begins() {
    let rig = Rig::each().remove(0);
    // Deaf, so that none makes room before the time of the last one is up.
    let command = json!({"command": "trap '' TERM; echo begun >> log; sleep 60; sleep 60", "timeout": 3});
    let told = all_at_once(&rig, 9, &command).join().expect("a client");
    assert!(told.iter().all(|told| told.contains("[timed out after 3 s")), "{told:?}");
    assert_eq!(told.iter().filter(|told| told.contains("it did not begin")).count(), 1, "{told:?}");
    assert_eq!(fs::read_to_string(rig.workspace().join("log")).expect("a log").matches("begun").count(), 8);
}
