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

use super::{GATE, Rig, list, send};

#[test]
fn a_task_goes_on_beside_the_turns_and_its_agent_hears_of_the_end() {
    let rig = Rig::new();
    let mut client = rig.client();
    let file = rig.home.agent_dir("a").join("agent.json");
    let mut config: Value = serde_json::from_str(&fs::read_to_string(&file).expect("agent.json")).expect("JSON");
    config["mine"] = json!({"x": [1]});
    fs::write(&file, config.to_string()).expect("agent.json");
    let id = rig.start(&format!("echo begun; {GATE}; echo built"));
    assert_eq!(id, "t1");
    let listed = rig.listed("a", 1);
    let task = rig.task(&id);
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

    rig.say("Meanwhile.");
    assert_eq!(send(&mut client, "a", "Are you there?").reply, "Meanwhile.");
    assert_eq!(rig.task(&id).status, TaskStatus::Running);

    rig.open();
    let heard = rig.heard("a", 1);
    let task = rig.task(&id);
    assert_eq!((task.status, task.exit_code, task.signal), (TaskStatus::Completed, Some(0), None));
    assert!(!is_running(task.pid));
    let text = &heard[0].content;
    assert!(text.starts_with("The background task t1 has ended with exit status 0 after "), "{text}");
    assert!(text.ends_with("\n| begun\n| built"), "{text}");
    assert!(heard[0].generated);
    let told = rig.wait_for(EventType::TaskFinished, 1);
    assert_eq!(told[0].data, json!({"id": id, "command": task.command, "status": "completed", "exit_code": 0}),);
    assert_eq!(rig.wait_for(EventType::TaskStarted, 1)[0].data["pid"], task.pid);
    rig.listed("a", 0);
    let config: Value = serde_json::from_str(&fs::read_to_string(&file).expect("agent.json")).expect("JSON");
    assert_eq!(config["mine"], json!({"x": [1]}));
    assert_eq!(counts(&mut client), (0, 1));
    assert_eq!(list(&mut client, Some("a")).len(), 1);

    rig.say("I see.");
    send(&mut client, "a", "And now?");
    let request = rig.server.requests().pop().expect("a request").body.to_string();
    assert!(request.contains("> The background task t1 has ended"), "the model is shown it as a quotation: {request}");
    assert_eq!(client.save("a", "all").header.query_count, 3, "it is no word of a person");
}

#[test]
fn how_a_task_ended_is_told_apart() {
    let rig = Rig::new();
    let failed = rig.start("echo no >&2; exit 3");
    let task = rig.ended(&failed);
    assert_eq!((task.status, task.exit_code), (TaskStatus::Failed, Some(3)));
    let killed = rig.start("kill -SEGV $$");
    let task = rig.ended(&killed);
    assert_eq!(task.status, TaskStatus::Failed);
    // A shell between may have made a number of it.
    assert!(task.signal == Some(11) || task.exit_code == Some(128 + 11), "{task:?}");
    let heard = rig.heard("a", 2);
    assert!(heard[0].content.contains("exit status 3") && heard[0].content.ends_with("| no"), "{}", heard[0].content);
    assert!(heard[1].content.contains("It printed nothing."), "{}", heard[1].content);
    let unknown = rig.start("exec /no/such/program");
    assert_eq!(rig.ended(&unknown).exit_code, Some(127));
}

#[test]
fn an_end_in_the_middle_of_a_turn_waits_for_the_results_of_its_calls() {
    let rig = Rig::new();
    let mut client = rig.client();
    let id = rig.start(GATE);
    // The call ends after the task has.
    let waits = "touch go; until test -e on; do sleep 0.01; done; echo seen";
    rig.server.anthropic().queue(Response::tool_call("c2", "bash", &json!({"command": waits})));
    rig.say("Both are done.");
    let turn = {
        let mut client = rig.client();
        std::thread::spawn(move || send(&mut client, "a", "Run it."))
    };
    rig.wait_for(EventType::TaskFinished, 1);
    assert_eq!(rig.ended(&id).status, TaskStatus::Completed);
    fs::write(rig.workspace().join("on"), "").expect("a file in the workspace");
    assert_eq!(turn.join().expect("the client").reply, "Both are done.");
    rig.heard("a", 1);
    let roles: Vec<Role> = client.messages("a").iter().map(|message| message.role).collect();
    use Role::{Assistant, System, ToolResult, User};
    assert_eq!(roles, [User, Assistant, ToolResult, Assistant, User, Assistant, ToolResult, System, Assistant]);
}

#[test]
fn an_idle_agent_hears_of_the_end_in_its_next_context() {
    let rig = Rig::new();
    let mut client = rig.client();
    let id = rig.start(GATE);
    client.save("a", "before");
    client.call::<chorus_proto::methods::context::Clear>(&Default::default()).expect("cleared");
    rig.open();
    rig.ended(&id);
    rig.heard("a", 1);
    assert_eq!(client.messages("a").len(), 1);
}

#[test]
fn a_renamed_agent_keeps_its_tasks_and_their_logs() {
    let rig = Rig::new();
    let mut client = rig.client();
    let id = rig.start(&format!("echo one; {GATE}; echo two"));
    rig.listed("a", 1);
    let params = chorus_proto::methods::agent::ConfigParams {
        name: "a".into(),
        key: Some("name".into()),
        value: Some("b".into()),
    };
    client.call::<chorus_proto::methods::agent::Config>(&params).expect("renamed");
    let task = rig.task(&id);
    assert_eq!((task.agent.as_str(), task.status), ("b", TaskStatus::Running));
    assert_eq!(std::path::Path::new(&task.log_path), rig.home.agent_dir("b").join("logs/t1.log"));
    fs::write(rig.home.agent_dir("b").join("workspace/go"), "").expect("a file in the workspace");
    rig.ended(&id);
    assert_eq!(fs::read_to_string(&task.log_path).expect("the log"), "one\ntwo\n");
    assert!(rig.heard("b", 1)[0].content.ends_with("| one\n| two"));
    rig.listed("b", 0);
}
