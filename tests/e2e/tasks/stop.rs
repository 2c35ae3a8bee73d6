//! Tasks end with the daemon, and with their agent.

use std::time::{Duration, Instant};

use chorus_proto::methods::agent::{Destroy, DestroyParams};
use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_proto::methods::tasks::{Stop, StopParams, TaskStatus};
use chorus_proto::{EventType, Role, Trigger};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::process::is_running;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::Value;

use super::{
    GATE, list, send, show_task, start_fixture, start_task, try_start_task, wait_for_end, wait_for_notices,
    wait_for_running_tasks,
};

#[test]
fn a_stop_ends_what_runs_and_every_agent_hears_of_it_in_what_is_saved() {
    let mut fixture = start_fixture();
    let names: Vec<String> = (0..10).map(|n| format!("agent-{n}")).collect();
    let mut pids = Vec::new();
    for (n, name) in names.iter().enumerate() {
        fixture.create_agent(name, Some("open"));
        // Every other one does not end when it is asked to.
        let command = if n % 2 == 0 { "trap '' TERM; sleep 300 & wait; sleep 300" } else { "sleep 300" };
        let id = try_start_task(&fixture, name, command).expect("a task");
        pids.push(show_task(&fixture, &id).pid);
    }
    // In the middle of a turn, too.
    fixture.models().anthropic().queue(Response::text(["Half a word"]).gate("never"));
    let turn = {
        let mut client = fixture.client();
        std::thread::spawn(move || {
            let text = "Talk.".to_owned();
            let agent = Some("agent-0".to_owned());
            let params = chorus_proto::methods::send::SendParams { agent, text, ..Default::default() };
            client.call::<chorus_proto::methods::send::Send>(&params)
        })
    };
    fixture.models().wait_for_gate("never");
    let begun = Instant::now();
    assert!(fixture.stop().success());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(turn.join().expect("the client").is_err());
    for pid in pids {
        assert!(!is_running(pid), "an orphan");
    }
    fixture.start();
    let mut client = fixture.client();
    for name in &names {
        let (session, messages) = client.get_session(name, "latest");
        assert_eq!(session.header.trigger, Trigger::Shutdown);
        let heard: Vec<_> = messages.iter().filter(|message| message.role == Role::System).collect();
        assert_eq!(heard.len(), 1, "{name}");
        assert!(heard[0].content.contains("was stopped after"), "{}", heard[0].content);
        let tasks = list(&mut client, Some(name));
        assert_eq!((tasks.len(), tasks[0].status), (1, TaskStatus::Stopped));
        wait_for_running_tasks(&fixture, name, 0);
    }
    for name in &names {
        assert_eq!(wait_for_notices(&fixture, name, 1).len(), 1, "it is told once");
    }
}

#[test]
fn stopping_waits_for_the_end_and_ends_all_that_was_started() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let id = start_task(&fixture, "trap 'exit 7' TERM; sleep 300 & wait");
    let pid = show_task(&fixture, &id).pid;
    let done = client.call::<Stop>(&StopParams { id: id.clone() }).expect("tasks.stop");
    assert!(done.stopped && !is_running(pid));
    assert_eq!(done.task.status, TaskStatus::Stopped);
    assert!(wait_for_notices(&fixture, "a", 1)[0].content.contains("was stopped after"));
    let again = client.call::<Stop>(&StopParams { id: id.clone() }).expect("tasks.stop");
    assert!(!again.stopped);
    assert_eq!(again.task, done.task);
    wait_for_running_tasks(&fixture, "a", 0);
}

#[test]
fn destroying_an_agent_with_a_task_and_unsaved_messages_ends_and_saves_both() {
    for keep_files in [false, true] {
        let fixture = start_fixture();
        let mut client = fixture.client();
        let id = start_task(&fixture, &format!("echo begun; {GATE}"));
        wait_for_running_tasks(&fixture, "a", 1);
        let task = show_task(&fixture, &id);
        let pid = task.pid;
        wait_until("it to have begun", DEADLINE, || {
            std::fs::read(&task.log_path).is_ok_and(|log| log == b"begun\n").then_some(())
        });
        let params = DestroyParams { name: "a".into(), keep_files, purge: false };
        let done = client.call::<Destroy>(&params).expect("agent.destroy");
        assert!(!is_running(pid));
        let saved = done.saved.expect("a session");
        assert_eq!(saved.header.trigger, Trigger::Destroy);
        let files = std::path::PathBuf::from(done.files.expect("its files"));
        let file = files.join("sessions").join(format!("{}.json", saved.header.session_id));
        let text = std::fs::read_to_string(file).expect("the session");
        assert!(text.contains(&format!("Background task {id} was stopped")), "{text}");
        let config: Value =
            serde_json::from_str(&std::fs::read_to_string(files.join("agent.json")).expect("agent.json"))
                .expect("JSON");
        assert_eq!(config["running_tasks"], serde_json::json!([]));
        let tasks = list(&mut client, None);
        assert_eq!((tasks.len(), tasks[0].status), (1, TaskStatus::Stopped));
        assert_eq!(std::fs::read_to_string(&tasks[0].log_path).expect("the log, where it is now"), "begun\n");
        if keep_files {
            fixture.create_agent("a", Some("open"));
            let next = start_task(&fixture, "true");
            wait_for_end(&fixture, &next);
        }
    }
}

#[test]
fn destroying_an_agent_in_mid_turn_ends_its_task_too() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let id = start_task(&fixture, GATE);
    fixture.models().anthropic().queue(Response::tool_call("c9", "bash", &serde_json::json!({"command": "sleep 300"})));
    let turn = {
        let mut client = fixture.client();
        std::thread::spawn(move || {
            let params = chorus_proto::methods::send::SendParams {
                agent: Some("a".into()),
                text: "Wait.".into(),
                ..Default::default()
            };
            client.call::<chorus_proto::methods::send::Send>(&params)
        })
    };
    fixture.wait_for_events(EventType::ToolStarted, 2);
    let begun = Instant::now();
    let done =
        client.call::<Destroy>(&DestroyParams { name: "a".into(), ..Default::default() }).expect("agent.destroy");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert!(turn.join().expect("the client").is_err());
    assert!(done.saved.is_some());
    assert_eq!(list(&mut client, None)[0].status, TaskStatus::Stopped, "{id}");
    fixture.create_agent("b", Some("open"));
    fixture.reply("Here.");
    assert_eq!(send(&mut client, "b", "Hello?").reply, "Here.");
}

#[test]
fn who_had_nothing_to_save_is_saved_with_what_it_heard_at_the_stop() {
    let mut fixture = start_fixture();
    let mut client = fixture.client();
    for name in ["idle", "saved"] {
        fixture.create_agent(name, Some("open"));
        try_start_task(&fixture, name, "sleep 300").expect("a task");
    }
    client
        .call::<Clear>(&ClearParams { conversation: None, agent: Some("idle".into()), save: false })
        .expect("context.clear");
    client.save("saved", "all of it");
    assert!(fixture.stop().success());
    fixture.start();
    let mut client = fixture.client();
    for name in ["idle", "saved"] {
        let (session, messages) = client.get_session(name, "latest");
        assert_eq!(session.header.trigger, Trigger::Shutdown, "{name}");
        assert!(messages.last().expect("a message").content.contains("was stopped after"), "{name}: {messages:?}");
        assert_eq!(client.agent_status(name).context.expect("live").unsaved, 0, "{name}");
    }
}

#[test]
fn a_stop_ends_the_turns_before_the_tasks() {
    let mut fixture = start_fixture();
    fixture.create_agent("b", Some("open"));
    let id = try_start_task(&fixture, "b", "trap '' TERM; echo deaf; sleep 300 & wait; sleep 300").expect("a task");
    let log = show_task(&fixture, &id).log_path;
    wait_until("it to be deaf", DEADLINE, || std::fs::read(&log).is_ok_and(|log| !log.is_empty()).then_some(()));
    fixture.models().anthropic().queue(Response::text(["Half a word"]).gate("never"));
    let turns: Vec<_> = ["Talk.", "And then?"]
        .into_iter()
        .map(|text| {
            let mut client = fixture.client();
            let (agent, text) = (Some("a".to_owned()), text.to_owned());
            let params = chorus_proto::methods::send::SendParams { agent, text, ..Default::default() };
            let turn = std::thread::spawn(move || client.call::<chorus_proto::methods::send::Send>(&params));
            fixture.models().wait_for_gate("never");
            turn
        })
        .collect();
    assert!(fixture.stop().success());
    for turn in turns {
        assert!(turn.join().expect("the client").is_err());
    }
    fixture.start();
    let seq = |kind| fixture.wait_for_events(kind, 1)[0].seq;
    assert!(seq(EventType::TurnInterrupted) < seq(EventType::TaskFinished));
    assert_eq!(fixture.client().get_session("a", "latest").1[0].content, "Talk.");
}
