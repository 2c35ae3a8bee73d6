//! P20, what tools come upon and write down: commands, in the background too, questions to people, git, files and notes.

use std::fs;

use chorus_proto::methods::agent::{Config, ConfigParams, Init, InitParams};
use chorus_proto::methods::approvals::{self, Approval, Approve, ApproveParams, Deny, DenyParams};
use chorus_proto::methods::audit::{Audit, AuditParams};
use chorus_proto::methods::send::{Send, SendParams, SendResult};
use chorus_proto::methods::tasks::{self, LogsParams, TaskStatus};
use chorus_proto::{CallError, ErrorKind, Role};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::{Value, json};

use super::fixture::RedactFixture;
use super::secrets::{Secret, sixty};

/// A shell command that waits until there is a file `go` in the workspace.
const GATE: &str = "until test -e go; do sleep 0.01; done";

impl RedactFixture {
    /// One more agent of Anthropic's model.
    fn agent(&self, name: &str, permissions: Value) {
        let model = Some("anthropic/claude-test".to_owned());
        let params = InitParams { name: name.into(), model, ..Default::default() };
        self.client().call::<Init>(&params).expect("agent.init");
        self.set(name, "permissions", permissions);
    }

    fn set(&self, name: &str, key: &str, value: Value) {
        let params = ConfigParams { name: name.into(), key: Some(key.into()), value: Some(value) };
        self.client().call::<Config>(&params).expect("agent.config");
    }

    /// Puts a file into a workspace, as its owner does.
    fn put(&self, agent: &str, name: &str, text: &str) {
        fs::write(self.home.agent_dir(agent).join("workspace").join(name), text).expect("a file in the workspace");
    }

    fn script(&self, tool: &str, params: &Value) {
        self.server.anthropic().queue(Response::tool_call("c1", tool, params));
        self.server.anthropic().queue(Response::text(["Done."]));
    }

    /// What came of the last call of an agent.
    fn result(&mut self, agent: &str) -> String {
        let shown = self.client().messages(agent);
        self.heard.push_str(&serde_json::to_string(&shown).expect("messages"));
        shown.into_iter().rfind(|message| message.role == Role::ToolResult).expect("a result").content
    }

    /// A turn with one call.
    fn call(&mut self, agent: &str, tool: &str, params: Value) -> String {
        self.script(tool, &params);
        self.send(agent).expect("a turn");
        self.result(agent)
    }

    /// A turn whose call is asked about, and what is asked; `answer` answers it.
    fn asked<T>(&mut self, command: &str, answer: impl FnOnce(&mut Self, &Approval) -> T) -> T {
        self.script("bash", &json!({"command": command}));
        let mut client = self.client();
        let params = SendParams { agent: Some("asks".into()), text: "go on".into(), ..Default::default() };
        let turn = std::thread::spawn(move || -> Result<SendResult, CallError> { client.call::<Send>(&params) });
        let mut client = self.client();
        let asked = wait_until("the question", DEADLINE, || {
            client.call::<approvals::List>(&approvals::ListParams::default()).expect("approvals.list").approvals.pop()
        });
        let answered = answer(self, &asked);
        let result = turn.join().expect("the client").expect("a turn");
        self.heard.push_str(&serde_json::to_string(&result).expect("an answer"));
        answered
    }

    /// A log of a task, as it is by now.
    fn log(&self, id: &str) -> String {
        self.client().call::<tasks::Logs>(&LogsParams { id: id.into(), ..Default::default() }).expect("tasks.logs").data
    }

    /// Waits until a task has ended and its agent has heard of it.
    fn ended(&mut self, agent: &str, id: &str) -> String {
        let mut client = self.client();
        let task = wait_until("the end of a task", DEADLINE, || {
            let task = client.call::<tasks::Show>(&tasks::ShowParams { id: id.into() }).expect("tasks.show").task;
            Some(task).filter(|task| task.status != TaskStatus::Running)
        });
        self.heard.push_str(&serde_json::to_string(&task).expect("a task"));
        wait_until("what the agent hears", DEADLINE, || {
            let texts = client.message_texts(agent);
            texts.into_iter().find(|text| text.starts_with(&format!("Background task {id} ")))
        })
    }
}

fn together(secrets: &[Secret]) -> String {
    secrets.iter().map(|secret| format!("here: {} and\n", secret.text)).collect()
}

fn marks(text: &str) -> usize {
    text.matches("[redacted:").count()
}

#[test]
fn what_tools_come_upon_is_written_down_without_secrets() {
    let mut fixture = RedactFixture::new();
    fixture.agent("d", "open".into());
    fixture.agent("asks", json!({"ask": ["tool:bash:.*"], "allow": [".*"], "bash": "whole"}));
    let secrets = sixty();
    let text = |at: usize| secrets[at].text.clone();
    // A command shows a file, and another fails and says its parameters back.
    fixture.put("d", "keys.txt", &together(&secrets[..20]));
    assert!(marks(&fixture.call("d", "bash", json!({"command": "cat keys.txt"}))) >= 20);
    let said = fixture.call("d", "bash", json!({"command": format!("echo '{}' >&2; exit 3", text(20))}));
    assert!(marks(&said) == 1 && said.ends_with("[exit status 3]"), "{said}");
    background(&mut fixture, &secrets[21..24]);
    approved_and_denied(&mut fixture, &secrets[24..28]);
    // Git, and files.
    fixture.call("d", "git_commit", json!({"message": format!("Use {}", text(28))}));
    assert_eq!(marks(&fixture.call("d", "git_log", json!({}))), 1);
    fixture.put("d", "keys.txt", &together(&secrets[28..34]));
    assert!(marks(&fixture.call("d", "git_diff", json!({}))) >= 26);
    let written = together(&secrets[34..38]);
    fixture.call("d", "create_file", json!({"path": "own.txt", "content": written}));
    let own = fixture.home.agent_dir("d").join("workspace/own.txt");
    assert_eq!(fs::read_to_string(own).expect("the file"), written, "files are the agent's work");
    assert!(marks(&fixture.call("d", "view", json!({"path": "own.txt"}))) >= 4);
    // What an agent keeps for later, and sends to another.
    for (tool, params) in [
        ("remember", json!({"text": format!("the key is {}", text(38)), "path": text(39)})),
        ("self_edit_system_prompt", json!({"new_prompt": format!("Use {}.", text(40))})),
        ("self_edit_docs", json!({"path": "plan.md", "content": together(&secrets[41..44])})),
        ("send_to_agent", json!({"agent": "b", "message": together(&secrets[44..46])})),
    ] {
        fixture.answer("b", Response::text(["I see."]));
        let said = fixture.call("d", tool, params);
        assert!(said.contains("secrets in it were redacted"), "{tool}: {said}");
    }
    for (tool, params) in [
        ("self_edit_docs", json!({"path": secrets[46].hidden, "content": "x"})),
        ("self_edit_model", json!({"model": secrets[46].hidden})),
        ("self_edit_permissions", json!({"profile": {"allow": [format!("tool:bash:{}", secrets[46].hidden)]}})),
    ] {
        let said = fixture.call("d", tool, params);
        assert!(said.contains("contains a secret"), "{tool}: {said}");
    }
    let mut client = fixture.client();
    wait_until("the message at the other agent", DEADLINE, || {
        client.messages_in("b", "from-d").into_iter().map(|message| message.content).find(|text| marks(text) == 2)
    });
    let audit = client.call::<Audit>(&AuditParams::default()).expect("audit");
    fixture.heard.push_str(&serde_json::to_string(&audit).expect("rows"));
    let everything = approvals::ListParams { all: true, ..Default::default() };
    let decided = client.call::<approvals::List>(&everything).expect("approvals.list").approvals;
    assert!(decided.len() == 2 && decided.iter().all(|asked| marks(&asked.action) == 1), "{decided:?}");
    fixture.heard.push_str(&serde_json::to_string(&decided).expect("approvals"));

    client.append("a", "Nothing was done here.");
    let places = fixture.places();
    let events = String::from_utf8_lossy(&places[0].1);
    for kind in ["approval.asked", "approval.decided", "task.started", "task.finished"] {
        let event = events.split("\"type\":").find(|event| event.starts_with(&format!("{kind:?}")));
        assert!(event.is_some_and(|event| event.contains("[redacted:")), "{kind}: {event:?}");
    }
    for (place, bytes) in places.iter().filter(|(place, _)| !place.contains("/workspace/")) {
        for secret in &secrets[..47] {
            let found = memchr::memmem::find(bytes, secret.hidden.as_bytes());
            assert_eq!(found, None, "{} is in {place}", secret.hidden);
        }
    }
}

/// A task whose command has a secret, and which prints another in two pieces.
fn background(fixture: &mut RedactFixture, secrets: &[Secret]) {
    let (first, second) = secrets[1].text.split_at(secrets[1].text.len() / 2);
    fixture.put("d", "first", &format!("it begins\n{first}"));
    fixture.put("d", "second", &format!("{second}\nthe end\n"));
    let command = format!(": '{}'; cat first; {GATE}; cat second", secrets[0].text);
    let said = fixture.call("d", "bash", json!({"command": command, "background": true}));
    let id = said.split(' ').nth(1).expect("an id").to_owned();
    wait_until("the first half", DEADLINE, || Some(fixture.log(&id)).filter(|log| !log.is_empty()));
    assert_eq!(fixture.log(&id), "it begins\n", "half a secret waits");
    let file = fixture.home.agent_dir("d").join("agent.json");
    let listed = wait_until("agent.json to list it", DEADLINE, || {
        fs::read_to_string(&file).ok().filter(|text| text.contains(&format!("{id:?}")))
    });
    assert!(listed.contains("[redacted:"), "{listed}");
    fixture.heard.push_str(&listed);
    fixture.put("d", "go", "");
    let heard = fixture.ended("d", &id);
    assert!(marks(&heard) == 2 && heard.ends_with("| the end"), "{heard}");
    assert_eq!(marks(&fixture.log(&id)), 1);
    // One that ends in the middle of it.
    let cut = format!("printf '%s' '{}'", &secrets[2].text);
    let said = fixture.call("d", "bash", json!({"command": cut, "background": true}));
    let id = said.split(' ').nth(1).expect("an id").to_owned();
    fixture.ended("d", &id);
    assert_eq!(marks(&fixture.log(&id)), 1);
}

/// Whoever is asked sees what runs; nobody else does.
fn approved_and_denied(fixture: &mut RedactFixture, secrets: &[Secret]) {
    let command = format!("echo '{}'", secrets[0].text);
    fixture.asked(&command, |fixture, asked| {
        assert!(asked.action.contains(&secrets[0].text), "{}", asked.action);
        assert!(asked.not_always.as_ref().is_some_and(|why| why.contains("secret")), "{asked:?}");
        let approve = |always| ApproveParams { id: asked.id.clone(), always, ..Default::default() };
        let mut client = fixture.client();
        assert_eq!(expect_error_kind(client.call::<Approve>(&approve(true))), ErrorKind::Denied);
        client.call::<Approve>(&approve(false)).expect("approved");
    });
    let said = fixture.result("asks");
    assert!(marks(&said) == 1 && said.ends_with("[exit status 0]"), "what ran was what was shown: {said}");
    let command = format!("echo '{}'", secrets[1].text);
    fixture.asked(&command, |fixture, asked| {
        fixture.client().call::<Deny>(&DenyParams { id: asked.id.clone(), reason: None }).expect("denied");
    });
    let said = fixture.result("asks");
    assert!(marks(&said) == 1 && said.contains("was not approved"), "{said}");
}

#[test]
fn an_agent_that_keeps_everything_keeps_it_in_tasks_and_memories_too() {
    let mut fixture = RedactFixture::new();
    fixture.agent("d", "open".into());
    fixture.set("d", "redact", false.into());
    let secret = sixty()[2].text.clone();
    let said = fixture.call("d", "bash", json!({"command": format!("echo {secret}"), "background": true}));
    let id = said.split(' ').nth(1).expect("an id").to_owned();
    assert_eq!(fixture.ended("d", &id).matches(&secret).count(), 2);
    assert_eq!(fixture.log(&id), format!("{secret}\n"));
    let said = fixture.call("d", "remember", json!({"text": secret}));
    assert!(!said.contains("were redacted"), "{said}");
    let said = fixture.call("d", "self_edit_system_prompt", json!({"new_prompt": secret}));
    assert!(!said.contains("were redacted"), "{said}");
    let file = fs::read_to_string(fixture.home.agent_dir("d").join("agent.json")).expect("agent.json");
    assert!(file.contains(&secret), "{file}");
    // The audit log does not.
    let audit = fixture.client().call::<Audit>(&AuditParams::default()).expect("audit");
    assert!(!serde_json::to_string(&audit).expect("rows").contains(&secret));
}
