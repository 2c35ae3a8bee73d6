//! From the start of a task to what its agent hears.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_proto::methods::tasks::TaskStatus;
use chorus_proto::{EventType, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::process::is_running;
use serde_json::{Value, json};

use super::{
    GATE, list, open_gate, send, show_task, start_fixture, start_task, wait_for_end, wait_for_notices,
    wait_for_running_tasks,
};

#[test]
fn a_task_goes_on_beside_the_turns_and_its_agent_hears_of_the_end() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let file = fixture.home.agent_dir("a").join("agent.json");
    let mut config: Value = serde_json::from_str(&fs::read_to_string(&file).expect("agent.json")).expect("JSON");
    config["mine"] = json!({"x": [1]});
    fs::write(&file, config.to_string()).expect("agent.json");
    let id = start_task(&fixture, &format!("echo begun; {GATE}; echo built"));
    assert_eq!(id, "t1");
    let listed = wait_for_running_tasks(&fixture, "a", 1);
    let task = show_task(&fixture, &id);
    assert_eq!(
        listed[0],
        json!({"id": id, "command": task.command, "started_at": task.started_at, "pid": task.pid, "status": "running"})
    );
    assert_eq!((task.agent.as_str(), task.status, task.ended_at), ("a", TaskStatus::Running, None));
    let counts = |client: &mut chorus_proto::Client| {
        let tasks = client.call::<Status>(&StatusParams::default()).expect("status").tasks;
        (tasks.running, tasks.finished)
    };
    assert_eq!(counts(&mut client), (1, 0));
    let mode = |path: &str| fs::metadata(path).expect("the log").permissions().mode() & 0o777;
    assert_eq!(mode(&task.log_path), 0o600);

    fixture.reply("Meanwhile.");
    assert_eq!(send(&mut client, "a", "Are you there?").reply, "Meanwhile.");
    assert_eq!(show_task(&fixture, &id).status, TaskStatus::Running);

    open_gate(&fixture);
    let heard = wait_for_notices(&fixture, "a", 1);
    let task = show_task(&fixture, &id);
    assert_eq!((task.status, task.exit_code, task.signal), (TaskStatus::Completed, Some(0), None));
    assert!(!is_running(task.pid));
    let text = &heard[0].content;
    assert!(text.starts_with("Background task t1 ended with exit status 0 after "), "{text}");
    assert!(text.ends_with("\n| begun\n| built"), "{text}");
    assert!(heard[0].generated);
    let told = fixture.wait_for_events(EventType::TaskFinished, 1);
    assert_eq!(told[0].data, json!({"id": id, "command": task.command, "status": "completed", "exit_code": 0}),);
    assert_eq!(fixture.wait_for_events(EventType::TaskStarted, 1)[0].data["pid"], task.pid);
    wait_for_running_tasks(&fixture, "a", 0);
    let config: Value = serde_json::from_str(&fs::read_to_string(&file).expect("agent.json")).expect("JSON");
    assert_eq!(config["mine"], json!({"x": [1]}));
    assert_eq!(counts(&mut client), (0, 1));
    assert_eq!(list(&mut client, Some("a")).len(), 1);

    fixture.reply("I see.");
    send(&mut client, "a", "And now?");
    let request = fixture.models().requests().pop().expect("a request").body.to_string();
    assert!(request.contains("> Background task t1 ended"), "the model is shown it as a quotation: {request}");
    assert_eq!(client.save("a", "all").header.query_count, 3, "it is no word of a person");
}

#[test]
fn how_a_task_ended_is_told_apart() {
    let fixture = start_fixture();
    let failed = start_task(&fixture, "echo no >&2; exit 3");
    let task = wait_for_end(&fixture, &failed);
    assert_eq!((task.status, task.exit_code), (TaskStatus::Failed, Some(3)));
    let killed = start_task(&fixture, "kill -SEGV $$");
    let task = wait_for_end(&fixture, &killed);
    assert_eq!(task.status, TaskStatus::Failed);
    // A shell between may have made a number of it.
    assert!(task.signal == Some(11) || task.exit_code == Some(128 + 11), "{task:?}");
    let heard = wait_for_notices(&fixture, "a", 2);
    assert!(heard[0].content.contains("exit status 3") && heard[0].content.ends_with("| no"), "{}", heard[0].content);
    assert!(heard[1].content.contains("No output."), "{}", heard[1].content);
    let unknown = start_task(&fixture, "exec /no/such/program");
    assert_eq!(wait_for_end(&fixture, &unknown).exit_code, Some(127));
}

#[test]
fn an_end_in_the_middle_of_a_turn_waits_for_the_results_of_its_calls() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let id = start_task(&fixture, GATE);
    // The call ends after the task has.
    let waits = "touch go; until test -e on; do sleep 0.01; done; echo seen";
    fixture.models().anthropic().queue(Response::tool_call("c2", "bash", &json!({"command": waits})));
    fixture.reply("Both are done.");
    let turn = {
        let mut client = fixture.client();
        std::thread::spawn(move || send(&mut client, "a", "Run it."))
    };
    fixture.wait_for_events(EventType::TaskFinished, 1);
    assert_eq!(wait_for_end(&fixture, &id).status, TaskStatus::Completed);
    fs::write(fixture.workspace("a").join("on"), "").expect("a file in the workspace");
    assert_eq!(turn.join().expect("the client").reply, "Both are done.");
    wait_for_notices(&fixture, "a", 1);
    let roles: Vec<Role> = client.messages("a").iter().map(|message| message.role).collect();
    use Role::{Assistant, System, ToolResult, User};
    assert_eq!(roles, [User, Assistant, ToolResult, Assistant, User, Assistant, ToolResult, System, Assistant]);
}

#[test]
fn an_idle_agent_hears_of_the_end_in_its_next_context() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let id = start_task(&fixture, GATE);
    client.save("a", "before");
    client.call::<chorus_proto::methods::context::Clear>(&Default::default()).expect("cleared");
    open_gate(&fixture);
    wait_for_end(&fixture, &id);
    wait_for_notices(&fixture, "a", 1);
    assert_eq!(client.messages("a").len(), 1);
}

#[test]
fn a_renamed_agent_keeps_its_tasks_and_their_logs() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let id = start_task(&fixture, &format!("echo one; {GATE}; echo two"));
    wait_for_running_tasks(&fixture, "a", 1);
    let params = chorus_proto::methods::agent::ConfigParams {
        name: "a".into(),
        key: Some("name".into()),
        value: Some("b".into()),
    };
    client.call::<chorus_proto::methods::agent::Config>(&params).expect("renamed");
    let task = show_task(&fixture, &id);
    assert_eq!((task.agent.as_str(), task.status), ("b", TaskStatus::Running));
    assert_eq!(std::path::Path::new(&task.log_path), fixture.home.agent_dir("b").join("logs/t1.log"));
    fs::write(fixture.home.agent_dir("b").join("workspace/go"), "").expect("a file in the workspace");
    wait_for_end(&fixture, &id);
    assert_eq!(fs::read_to_string(&task.log_path).expect("the log"), "one\ntwo\n");
    assert!(wait_for_notices(&fixture, "b", 1)[0].content.ends_with("| one\n| two"));
    wait_for_running_tasks(&fixture, "b", 0);
}
