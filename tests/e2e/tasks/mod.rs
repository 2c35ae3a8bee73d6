//! Commands in the background: an agent of the scripted model starts them, they go on beside the turns, and it hears of
//! their end.

mod commands;
mod crash;
mod lifecycle;
mod limits;
mod output;
mod stop;

use std::fs;
use std::time::Duration;

use chorus_proto::methods::send::{Send, SendParams, SendResult};
use chorus_proto::methods::tasks::{List, ListParams, Show, ShowParams, Task, TaskStatus};
use chorus_proto::{Client, Message, Role};
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, Home, wait_until};
use serde_json::{Value, json};

use crate::home;

/// A shell command that waits until [`Fixture::open`].
const GATE: &str = "until test -e go; do sleep 0.01; done";

/// Starts a daemon with a model, and the agent `a`, which may do everything.
fn start_fixture() -> Fixture {
    let fixture = Fixture::builder(home()).models().start();
    fixture.create_agent("a", Some("open"));
    fixture
}

/// Lets the commands that wait go on.
pub fn open_gate(fixture: &Fixture) {
    fs::write(fixture.workspace("a").join("go"), "").expect("a file in the workspace");
}

/// A turn in which the agent starts a command in the background; the task's id, or why there is none.
pub fn try_start_task(fixture: &Fixture, agent: &str, command: &str) -> Result<String, String> {
    let params = json!({"command": command, "background": true});
    fixture.models().anthropic().queue(Response::tool_call("c1", "bash", &params));
    fixture.reply("It is started.");
    let mut client = fixture.client();
    assert_eq!(send(&mut client, agent, "Start it.").reply, "It is started.");
    let shown = client.messages(agent);
    let result = shown.iter().rfind(|message| message.role == Role::ToolResult).expect("a result");
    if result.is_error {
        return Err(result.content.clone());
    }
    let id = result.content.strip_prefix("task ").and_then(|rest| rest.split(' ').next());
    Ok(id.expect("the id of a task").to_owned())
}

/// The same of a task that must start.
pub fn start_task(fixture: &Fixture, command: &str) -> String {
    try_start_task(fixture, "a", command).expect("a task")
}

pub fn show_task(fixture: &Fixture, id: &str) -> Task {
    fixture.client().call::<Show>(&ShowParams { id: id.into() }).expect("tasks.show").task
}

/// Waits until the task has ended.
pub fn wait_for_end(fixture: &Fixture, id: &str) -> Task {
    wait_for_end_within(fixture, id, DEADLINE)
}

pub fn wait_for_end_within(fixture: &Fixture, id: &str, patience: Duration) -> Task {
    wait_until("the end of a task", patience, || {
        Some(show_task(fixture, id)).filter(|task| task.status != TaskStatus::Running)
    })
}

/// The commands of an agent that agent.json lists as running, once there are `count` of them.
pub fn wait_for_running_tasks(fixture: &Fixture, agent: &str, count: usize) -> Vec<Value> {
    let file = fixture.home.agent_dir(agent).join("agent.json");
    wait_until("agent.json to list what runs", DEADLINE, || {
        let config: Value = serde_json::from_str(&fs::read_to_string(&file).ok()?).expect("JSON");
        let list = config["running_tasks"].as_array().cloned().unwrap_or_default();
        Some(list).filter(|list| list.len() == count)
    })
}

/// Waits until the agent has heard of the end of `count` tasks.
pub fn wait_for_notices(fixture: &Fixture, agent: &str, count: usize) -> Vec<Message> {
    let mut client = fixture.client();
    wait_until("what an agent hears", DEADLINE, || {
        let heard: Vec<_> = client.messages(agent).into_iter().filter(|message| message.role == Role::System).collect();
        Some(heard).filter(|heard| heard.len() >= count)
    })
}

/// Ends the daemon at once, does something, and starts it again.
fn crash(fixture: &mut Fixture, meanwhile: impl FnOnce(&Home)) {
    fixture.kill();
    meanwhile(&fixture.home);
    fixture.start();
}

fn send(client: &mut Client, agent: &str, text: &str) -> SendResult {
    let params = SendParams { agent: Some(agent.into()), text: text.into(), ..Default::default() };
    client.call::<Send>(&params).expect("a turn")
}

fn list(client: &mut Client, agent: Option<&str>) -> Vec<Task> {
    let params = ListParams { agent: agent.map(Into::into), all_agents: agent.is_none(), ..Default::default() };
    client.call::<List>(&params).expect("tasks.list").tasks
}
