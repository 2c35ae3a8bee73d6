//! The daemon ends while a command runs: in order, or at once.

use std::fs;
use std::time::{Duration, Instant};

use chorus_proto::{EventType, Role, Trigger};
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::process::is_running;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::json;

use super::super::{MODELS, assert_legal, send, start_with_model};
use super::{configure, results};

/// Notes that it was begun and by which process, and does not end by itself.
const COMMAND: &str = "echo x >> begun; exec sleep 8642";

/// A turn of `a` in a command.
fn begun(
    fixture: &Fixture,
) -> std::thread::JoinHandle<Result<chorus_proto::methods::send::SendResult, chorus_proto::CallError>> {
    configure(&mut fixture.client(), "permissions", "open");
    fixture.answer(Response::tool_call("c1", "bash", &json!({"command": COMMAND})).then_call(
        "c2",
        "create_file",
        &json!({"path": "beside", "content": ""}),
    ));
    let turn = fixture.spawn_send("a", "Run it.");
    let file = fixture.home.agent_dir("a").join("workspace/begun");
    wait_until("the command to begin", DEADLINE, || fs::read(&file).ok().filter(|text| !text.is_empty()));
    // And what ran beside it to be in the record.
    wait_until("a result", DEADLINE, || (results(&mut fixture.client()).len() == 1).then_some(()));
    turn
}

/// The processes below a process.
fn below(pid: u32) -> Vec<u32> {
    let parent = |of: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{of}/stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
    };
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let all: Vec<u32> = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let (mut found, mut last) = (vec![pid], 0);
    while found.len() > last {
        last = found.len();
        found.extend(
            all.iter().filter(|of| parent(**of).is_some_and(|of| found.contains(&of))).copied().collect::<Vec<_>>(),
        );
        found.sort_unstable();
        found.dedup();
    }
    found.retain(|of| *of != pid);
    found
}

#[track_caller]
fn gone(processes: &[u32]) {
    assert!(!processes.is_empty());
    wait_until("every process of the command to end", DEADLINE, || {
        processes.iter().all(|pid| !is_running(*pid)).then_some(())
    });
}

/// How often the command was begun.
fn times(fixture: &Fixture) -> usize {
    fs::read_to_string(fixture.home.agent_dir("a").join("workspace/begun")).expect("the file").lines().count()
}

#[test]
fn a_stop_ends_the_command_closes_its_call_and_saves() {
    for model in MODELS {
        let mut fixture = start_with_model(model);
        let turn = begun(&fixture);
        let processes = below(fixture.daemon().pid);
        let at = Instant::now();
        assert!(fixture.stop().success());
        assert!(at.elapsed() < Duration::from_secs(10), "{:?}", at.elapsed());
        assert!(turn.join().expect("the client").is_err());
        gone(&processes);
        fixture.start();
        let mut client = fixture.client();
        let sessions = client.history("a");
        assert_eq!((sessions.len(), sessions[0].header.trigger), (1, Trigger::Shutdown));
        let (_, messages) = client.get_session("a", "latest");
        assert_legal(&messages);
        let result = messages.iter().find(|message| message.tool_call_id.as_deref() == Some("c1")).expect("a result");
        assert!(result.is_error && result.content.contains("[cancelled"), "{}", result.content);
        // A summary of what was saved may be asked for, and has no tools.
        let asked = fixture.models().requests().iter().filter(|request| !request.body["tools"].is_null()).count();
        assert_eq!((times(&fixture), asked), (1, 1), "nothing is run or asked again");
    }
}

#[test]
fn after_a_kill_what_came_of_the_command_is_unknown_and_it_is_not_run_again() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let turn = begun(&fixture);
        let processes = below(fixture.daemon().pid);
        let fixture = fixture.crash();
        assert!(turn.join().expect("the client").is_err());
        gone(&processes);
        fixture.wait_for_events(EventType::TurnInterrupted, 1);
        let mut client = fixture.client();
        let shown = client.messages("a");
        assert_legal(&shown);
        let of = |id: &str| shown.iter().find(|message| message.tool_call_id.as_deref() == Some(id)).expect("a result");
        assert_eq!((of("c1").content.as_str(), of("c1").is_error), ("interrupted, outcome unknown", true));
        assert!(!of("c2").is_error, "what had ended keeps its result");
        fixture.reply("I look whether it was done.");
        assert_eq!(send(&mut client, "And now?").expect("a turn").reply, "I look whether it was done.");
        // Once more: what is known by now stays.
        let fixture = fixture.crash();
        let mut client = fixture.client();
        assert_eq!(results(&mut client).len(), 2);
        assert_eq!(client.messages("a").iter().filter(|message| message.role == Role::User).count(), 2);
        assert_eq!((times(&fixture), fixture.models().requests().len()), (1, 2), "nothing is run or asked again");
    }
}
