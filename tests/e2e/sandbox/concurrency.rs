//! How many commands run at once.

use std::fs;
use std::thread::JoinHandle;

use chorus_proto::Role;
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::{Value, json};

use super::each_sandbox;

/// An answer with the same call so many times.
fn calls(count: usize, params: &Value) -> Response {
    (0..count).fold(Response::empty(), |answer, n| answer.then_call(&format!("c{n}"), "bash", params))
}

/// A turn of an agent beside the test; what came of each call.
fn turn(fixture: &Fixture, agent: &str) -> JoinHandle<Vec<String>> {
    let mut client = fixture.client();
    client.set_timeout(Some(DEADLINE * 3)).expect("a time-out");
    let agent = agent.to_owned();
    std::thread::spawn(move || {
        let params = SendParams { agent: Some(agent.clone()), text: "Go.".into(), ..Default::default() };
        client.call::<Send>(&params).expect("a turn");
        let messages = client.messages(&agent).into_iter();
        messages.filter(|message| message.role == Role::ToolResult).map(|message| message.content).collect()
    })
}

#[test]
fn five_commands_of_an_answer_run_and_the_others_wait() {
    let fixture = each_sandbox().remove(0);
    let log = fixture.workspace("a").join("log");
    let command = "echo begun >> log; until test -e go; do sleep 0.05; done; echo ended >> log";
    fixture.models().anthropic().queue(calls(12, &json!({"command": command})));
    fixture.models().anthropic().queue(Response::text(["Done."]));
    let turn = turn(&fixture, "a");
    let lines = || fs::read_to_string(&log).unwrap_or_default();
    wait_until("five to begin", DEADLINE, || (lines().lines().count() >= 5).then_some(()));
    fs::write(fixture.workspace("a").join("go"), "").expect("a sign");
    assert!(turn.join().expect("a client").iter().all(|told| told == "[exit status 0]"));
    let mut running = 0_usize;
    for line in lines().lines() {
        running = if line == "begun" { running + 1 } else { running - 1 };
        assert!(running <= 5, "{}", lines());
    }
    assert_eq!(lines().matches("begun").count(), 12);
}

#[test]
fn of_many_agents_thirty_two_commands_run_and_who_waits_too_long_never_begins() {
    let fixture = each_sandbox().remove(0);
    let agents: Vec<String> = ["a", "b", "c", "d", "e", "f", "g"].map(str::to_owned).into();
    agents.iter().skip(1).for_each(|agent| fixture.create_agent(agent, Some("any")));
    // Deaf, so that none makes room before the time of the last one is up.
    let command = json!({"command": "trap '' TERM; echo begun >> log; sleep 60; sleep 60", "timeout": 8});
    agents.iter().for_each(|_| fixture.models().anthropic().queue(calls(5, &command)));
    agents.iter().for_each(|_| fixture.models().anthropic().queue(Response::text(["Done."])));
    let turns: Vec<_> = agents.iter().map(|agent| turn(&fixture, agent)).collect();
    let told: Vec<String> = turns.into_iter().flat_map(|turn| turn.join().expect("a client")).collect();
    assert!(told.len() == 35 && told.iter().all(|told| told.contains("[timed out after 8 s")), "{told:?}");
    assert_eq!(told.iter().filter(|told| told.contains("not started")).count(), 3, "{told:?}");
    let log =
        |agent: &String| fs::read_to_string(fixture.home.agent_dir(agent).join("workspace/log")).unwrap_or_default();
    assert_eq!(agents.iter().map(|agent| log(agent).matches("begun").count()).sum::<usize>(), 32);
}
