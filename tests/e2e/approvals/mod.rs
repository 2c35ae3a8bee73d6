//! Approvals: asked through the socket, answered from elsewhere or at the terminal, bound to one action, denied by whatever ends
//! them.

mod always;
mod answer;
mod choices;
mod expiry;
mod list;
mod prompt;
mod subscribers;

use std::path::Path;
use std::thread::JoinHandle;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::approvals::{
    Approval, Approve, ApproveParams, ApproveResult, Deny, DenyParams, List, ListParams,
};
use chorus_proto::methods::audit::{Audit, AuditParams, AuditRow};
use chorus_proto::methods::send::SendResult;
use chorus_proto::{CallError, Client, Role};
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, wait_until};
use serde_json::json;

use crate::home;

/// What is asked about, in a profile that allows all else.
pub const ACTION: &str = "tool:list_models:";
pub const ASKING: &str = "[permissions.asking]\nask = [\"tool:list_models:.*\"]\nallow = [\".*\"]\nbash = \"whole\"\n";

/// How a turn beside the test ends.
type Turn = JoinHandle<Result<SendResult, CallError>>;

/// Starts a daemon with a model, and the agent `a`, which is asked about `list_models`.
pub fn start_fixture() -> Fixture {
    start_fixture_of("asking")
}

/// Gives `a` other permissions.
pub fn start_fixture_of(permissions: &str) -> Fixture {
    let fixture = Fixture::builder(home()).models().tables(ASKING).start();
    fixture.create_agent("a", Some(permissions));
    fixture
}

/// The model's next answers: so many calls at once, then a word.
pub fn queue_calls(fixture: &Fixture, calls: usize) {
    fixture.models().anthropic().queue(calls_of(calls));
    fixture.models().anthropic().queue(Response::text(["Done."]));
}

/// A turn of `a` that wants so many answers, one after the other, and waits for the first.
pub fn ask(fixture: &Fixture, count: usize) -> (Vec<Approval>, Turn) {
    queue_calls(fixture, count);
    let turn = fixture.spawn_send("a", "Which are there?");
    (open(&mut fixture.client(), 1), turn)
}

/// A turn of `a` that wants so many answers, and one of a new agent `b` that wants one.
pub fn ask_for_two_agents(fixture: &Fixture, count: usize) -> (Turn, Turn) {
    agent(&mut fixture.client(), "b");
    let mut client = fixture.client();
    fixture.models().anthropic().queue(calls_of(count));
    let one = fixture.spawn_send("a", "Which are there?");
    open(&mut client, 1);
    fixture.models().anthropic().queue(calls_of(1));
    let other = fixture.spawn_send("b", "And of b?");
    open(&mut client, 2);
    fixture.models().anthropic().set_fallback(Response::text(["Done."]));
    (one, other)
}

/// The decisions in the audit log.
pub fn decisions(fixture: &Fixture) -> Vec<String> {
    audit(&mut fixture.client()).into_iter().map(|row| row.decision).collect()
}

pub fn config(server: &ModelServer, top: &str) -> String {
    format!("{top}\n{}{ASKING}", server.config_toml())
}

pub fn agent(client: &mut Client, name: &str) {
    agent_of(client, name, "asking");
}

pub fn agent_of(client: &mut Client, name: &str, permissions: &str) {
    let params = InitParams { name: name.into(), permissions: Some(permissions.into()), ..Default::default() };
    client.call::<Init>(&params).expect("agent.init");
}

pub fn calls_of(count: usize) -> Response {
    (0..count).fold(Response::empty(), |answer, n| answer.then_call(&format!("c{n}"), "list_models", &json!({})))
}

pub fn results(client: &mut Client, agent: &str) -> Vec<(bool, String)> {
    let results = client.messages(agent).into_iter().filter(|message| message.role == Role::ToolResult);
    results.map(|message| (message.is_error, message.content)).collect()
}

pub fn audit(client: &mut Client) -> Vec<AuditRow> {
    client.call::<Audit>(&AuditParams::default()).expect("audit").rows
}

pub fn list(client: &mut Client) -> Vec<Approval> {
    client.call::<List>(&ListParams::default()).expect("approvals.list").approvals
}

/// Waits until so many are open.
pub fn open(client: &mut Client, count: usize) -> Vec<Approval> {
    wait_until("the questions", DEADLINE, || Some(list(client)).filter(|open| open.len() >= count))
}

fn approve(client: &mut Client, id: &str) -> Result<ApproveResult, CallError> {
    client.call::<Approve>(&ApproveParams { id: id.into(), ..Default::default() })
}

fn always(client: &mut Client, id: &str) -> Result<ApproveResult, CallError> {
    client.call::<Approve>(&ApproveParams { id: id.into(), always: true, ..Default::default() })
}

fn deny(client: &mut Client, id: &str) -> Result<(), CallError> {
    client.call::<Deny>(&DenyParams { id: id.into(), reason: None }).map(drop)
}

/// Has `sql` run in the catalog of a home.
pub fn in_catalog(home: &Path, sql: &str) {
    let database = rusqlite::Connection::open(home.join("db/chorus.db")).expect("the catalog");
    database.busy_timeout(DEADLINE).expect("a time-out");
    database.execute_batch(sql).expect("it runs");
}
