//! Commands in the background: an agent of the scripted model starts them, they go on beside the turns, and it hears of
//! their end.

mod commands;
mod crash;
mod lifecycle;
mod limits;
mod output;
mod stop;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::send::{Send, SendParams, SendResult};
use chorus_proto::methods::tasks::{List, ListParams, Show, ShowParams, Task, TaskStatus};
use chorus_proto::{Client, Event, EventType, Message, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::{Value, json};

use crate::events::events;
use crate::home;

/// A daemon with a model, and the agent `a`, which may do everything.
struct Rig {
    server: ModelServer,
    home: Home,
    daemon: Daemon,
}

/// What makes a command wait until [`Rig::open`].
const GATE: &str = "until test -e go; do sleep 0.01; done";

impl Rig {
    fn new() -> Self {
        let (server, home) = (ModelServer::start(), home());
        let daemon = Daemon::start_with(&home, &server.config_toml());
        let rig = Self { server, home, daemon };
        rig.init("a");
        rig
    }

    fn init(&self, name: &str) {
        let params = InitParams { name: name.into(), permissions: Some("open".into()), ..Default::default() };
        self.client().call::<Init>(&params).expect("agent.init");
    }

    fn client(&self) -> Client {
        self.daemon.client()
    }

    fn workspace(&self) -> PathBuf {
        self.home.agent_dir("a").join("workspace")
    }

    /// Lets the commands that wait go on.
    fn open(&self) {
        fs::write(self.workspace().join("go"), "").expect("a file in the workspace");
    }

    fn say(&self, text: &str) {
        self.server.anthropic().queue(Response::text([text]));
    }

    /// A turn in which the agent starts a command in the background; the task's id, or why there is none.
    fn try_start(&self, agent: &str, command: &str) -> Result<String, String> {
        let params = json!({"command": command, "background": true});
        self.server.anthropic().queue(Response::tool_call("c1", "bash", &params));
        self.say("It is started.");
        let mut client = self.client();
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
    fn start(&self, command: &str) -> String {
        self.try_start("a", command).expect("a task")
    }

    fn task(&self, id: &str) -> Task {
        self.client().call::<Show>(&ShowParams { id: id.into() }).expect("tasks.show").task
    }

    /// Waits until the task has ended.
    fn ended(&self, id: &str) -> Task {
        self.ended_within(id, DEADLINE)
    }

    fn ended_within(&self, id: &str, patience: Duration) -> Task {
        wait_until("the end of a task", patience, || {
            Some(self.task(id)).filter(|task| task.status != TaskStatus::Running)
        })
    }

    /// The commands of an agent that agent.json lists as running, once there are `count` of them.
    fn listed(&self, agent: &str, count: usize) -> Vec<Value> {
        let file = self.home.agent_dir(agent).join("agent.json");
        wait_until("agent.json to list what runs", DEADLINE, || {
            let config: Value = serde_json::from_str(&fs::read_to_string(&file).ok()?).expect("JSON");
            let list = config["running_tasks"].as_array().cloned().unwrap_or_default();
            Some(list).filter(|list| list.len() == count)
        })
    }

    /// Waits until an event of this kind was told `count` times.
    fn wait_for(&self, kind: EventType, count: usize) -> Vec<Event> {
        let mut client = self.client();
        wait_until(kind.as_str(), DEADLINE, || {
            let all: Vec<_> = events(&mut client, 0).into_iter().filter(|event| event.kind == kind).collect();
            Some(all).filter(|all| all.len() >= count)
        })
    }

    /// Waits until the agent has heard of the end of `count` tasks.
    fn heard(&self, agent: &str, count: usize) -> Vec<Message> {
        let mut client = self.client();
        wait_until("what an agent hears", DEADLINE, || {
            let heard: Vec<_> =
                client.messages(agent).into_iter().filter(|message| message.role == Role::System).collect();
            Some(heard).filter(|heard| heard.len() >= count)
        })
    }

    /// Ends the daemon at once, does something, and starts it again.
    fn crash(self, meanwhile: impl FnOnce(&Home)) -> Self {
        self.daemon.kill9();
        meanwhile(&self.home);
        Self { daemon: Daemon::start(&self.home), ..self }
    }
}

fn send(client: &mut Client, agent: &str, text: &str) -> SendResult {
    let params = SendParams { agent: Some(agent.into()), text: text.into(), ..Default::default() };
    client.call::<Send>(&params).expect("a turn")
}

fn list(client: &mut Client, agent: Option<&str>) -> Vec<Task> {
    let params = ListParams { agent: agent.map(Into::into), all_agents: agent.is_none(), ..Default::default() };
    client.call::<List>(&params).expect("tasks.list").tasks
}
