//! What agents do, as one story through the real binaries: an agent works in its workspace, asks where it must, is held back where
//! it may not, changes itself, and all of it is written down.

mod acts;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::{Client, Event, EventType, Message, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::{ModelServer, RecordedRequest, Response};
use chorus_tests::{DEADLINE, Daemon, Home, InteractiveCommand, wait_until};
use serde_json::{Value, json};

use crate::home;

/// The model of each wire format.
const MODELS: [&str; 2] = ["anthropic/claude-test", "local/small"];

/// A daemon with a model; `a`, whose story it is, answers by one wire format, and `b` by the other.
struct Story {
    server: ModelServer,
    home: Home,
    daemon: Daemon,
    model: &'static str,
}

/// Calls of one answer.
type Calls<'a> = &'a [(&'a str, Value)];

impl Story {
    fn new(model: &'static str) -> Self {
        let (server, home) = (ModelServer::start(), home());
        let daemon = Daemon::start_with(&home, &server.config_toml());
        let story = Self { server, home, daemon, model };
        let other = if model == MODELS[0] { MODELS[1] } else { MODELS[0] };
        for (name, model) in [("a", model), ("b", other)] {
            let init = InitParams { name: name.into(), model: Some(model.into()), ..Default::default() };
            story.client().call::<Init>(&init).expect("agent.init");
        }
        story
    }

    fn client(&self) -> Client {
        self.daemon.client()
    }

    /// The next answer of `a` or `b`.
    fn answer(&self, agent: &str, answer: Response) {
        if (self.model == MODELS[0]) == (agent == "a") {
            self.server.anthropic().queue(answer);
        } else {
            self.server.openai().queue(answer);
        }
    }

    /// A turn of `a` by `chorusctl send`: these answers with their calls, then a word. What is asked about is approved as it is
    /// asked: `--always` or once. Returns the results of the calls.
    #[track_caller]
    fn turn(&self, answers: &[Calls<'_>], approved: &[(&str, bool)]) -> Vec<Message> {
        let before = self.results().len();
        for (step, calls) in answers.iter().enumerate() {
            let named = calls.iter().enumerate();
            let call = |answer: Response, (n, (name, params)): (usize, &(&str, Value))| {
                answer.then_call(&format!("c{before}-{step}-{n}"), name, params)
            };
            self.answer("a", named.fold(Response::empty(), call));
        }
        self.answer("a", Response::text(["That is done."]));
        let mut command = self.home.command(self.home.bins.chorusctl);
        command.args(["--agent", "a", "send", "Go on."]);
        let mut send = InteractiveCommand::piped(command);
        send.close_input();
        for (action, always) in approved {
            self.approve(action, *always);
        }
        let (status, said, noted) = send.wait_for_exit();
        assert!(status.success(), "{said}{noted}");
        assert!(said.ends_with("That is done.\n"), "{said}{noted}");
        self.results().split_off(before)
    }

    /// Waits until somebody is asked about this action, and about nothing else.
    #[track_caller]
    fn approve(&self, action: &str, always: bool) {
        let open = || chorusctl(&self.home, ["--json", "approvals"]).expect_json()["approvals"].take();
        let open = wait_until(action, DEADLINE, || Some(open()).filter(|open| open[0].is_object()));
        assert_eq!((open[0]["action"].as_str(), &open[1]), (Some(action), &Value::Null), "{open}");
        let id = open[0]["id"].as_str().expect("an id");
        let mut words = vec!["approvals", "approve", id];
        words.extend(always.then_some("--always"));
        chorusctl(&self.home, words).expect_success();
    }

    /// The results of all calls of `a` so far.
    fn results(&self) -> Vec<Message> {
        self.client().messages("a").into_iter().filter(|message| message.role == Role::ToolResult).collect()
    }

    /// The newest request of the model of `a`.
    fn request(&self) -> RecordedRequest {
        let path = if self.model == MODELS[0] { "/v1/messages" } else { "/v1/chat/completions" };
        self.server.requests().into_iter().rfind(|request| request.path == path).expect("a request")
    }

    /// The tools that the newest request of `a` shows.
    fn tools(&self) -> Vec<String> {
        let body = self.request().body;
        let name = |tool: &Value| tool["name"].as_str().or(tool["function"]["name"].as_str()).map(str::to_owned);
        body["tools"].as_array().expect("tools").iter().filter_map(name).collect()
    }

    /// The decisions about `a`: `allow tool:view:x`.
    fn decisions(&self) -> Vec<String> {
        let listed = chorusctl(&self.home, ["--json", "--agent", "a", "audit"]).expect_json();
        let row = |row: &Value| {
            let text = |key: &str| row[key].as_str().expect("a text").to_owned();
            format!("{} {}", text("decision"), text("action"))
        };
        listed["rows"].as_array().expect("rows").iter().map(row).collect()
    }

    /// What was told of `a`, once there are `count` of this kind.
    fn told(&self, kind: EventType, count: usize) -> Vec<Event> {
        let of = |event: &Event| event.kind == kind && event.agent.as_deref() == Some("a");
        wait_until(kind.as_str(), DEADLINE, || {
            let all: Vec<_> = self.client().events(0).into_iter().filter(of).collect();
            Some(all).filter(|all| all.len() >= count)
        })
    }
}

fn create(path: &str, content: &str) -> (&'static str, Value) {
    ("create_file", json!({"path": path, "content": content}))
}

fn view(path: &str) -> (&'static str, Value) {
    ("view", json!({"path": path}))
}

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command}))
}
