//! What an agent does to itself and to other agents: its prompt, notes, permissions and model, what it remembers, finds again and
//! sends; and that nothing but a person's word gives it more.

mod authority;
mod memory;
mod messages;
mod search;
mod settings;

use chorus_proto::Role;
use chorus_tests::Fixture;
use chorus_tests::Home;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use serde_json::{Value, json};

use crate::home;
use chorus_tests::fixture::Builder;

/// What came of a call.
#[derive(Debug, PartialEq, Eq)]
pub struct ToolOutput {
    pub text: String,
    pub is_error: bool,
}

/// Starts a daemon with a scripted model, and the agent `a`, which answers by it.
pub fn start_fixture(permissions: &str) -> Fixture {
    start_fixture_with(permissions, "")
}

/// Adds tables to config.toml.
pub fn start_fixture_with(permissions: &str, tables: &str) -> Fixture {
    let fixture = build_fixture(home(), tables).start();
    fixture.create_agent("a", Some(permissions));
    fixture
}

/// Prepares a fixture in which nobody answers questions.
pub fn build_fixture(home: Home, tables: &str) -> Builder {
    Fixture::builder(home).models().model("anthropic/claude-test").keys("approval_timeout = \"1s\"").tables(tables)
}

/// A turn of `a` in which its model makes one call.
pub fn call_tool(fixture: &Fixture, tool: &str, params: Value) -> ToolOutput {
    fixture.models().anthropic().queue(Response::tool_call("c1", tool, &params));
    fixture.models().anthropic().queue_text(["Done."]);
    fixture.send("a", "do it").expect("a turn");
    results(fixture, "a").pop().expect("a result")
}

/// A call that must succeed.
#[track_caller]
pub fn expect_tool(fixture: &Fixture, tool: &str, params: Value) -> String {
    let came = call_tool(fixture, tool, params);
    assert!(!came.is_error, "{tool}: {}", came.text);
    came.text
}

/// A call that must fail.
#[track_caller]
pub fn expect_tool_error(fixture: &Fixture, tool: &str, params: Value) -> String {
    let came = call_tool(fixture, tool, params);
    assert!(came.is_error, "{tool}: {}", came.text);
    came.text
}

/// The results of calls in the context of an agent.
pub fn results(fixture: &Fixture, agent: &str) -> Vec<ToolOutput> {
    results_in(fixture, agent, "main")
}

/// The results of the tool calls in a conversation of an agent.
pub fn results_in(fixture: &Fixture, agent: &str, conversation: &str) -> Vec<ToolOutput> {
    let messages = fixture.client().messages_in(agent, conversation);
    let results = messages.into_iter().filter(|message| message.role == Role::ToolResult);
    results.map(|message| ToolOutput { text: message.content, is_error: message.is_error }).collect()
}

/// The blocks of the prompt in the last request of `a`.
pub fn last_prompt(fixture: &Fixture) -> Vec<String> {
    let requests = fixture.models().requests();
    // Those for summaries have no tools.
    let of_turn = |body: &Value| body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let mut all = requests.iter().rev().filter(|request| request.path == "/v1/messages");
    let last = all.find(|request| of_turn(&request.body)).expect("a request");
    let system = last.body["system"].as_array().cloned().unwrap_or_default();
    system.iter().map(|block| block["text"].as_str().expect("a text").to_owned()).collect()
}

/// Rows of a table of the catalog: all columns as text.
pub fn catalog_rows(fixture: &Fixture, query: &str) -> Vec<Vec<String>> {
    let database = open_catalog(fixture);
    let mut statement = database.prepare(query).expect("a query");
    let columns = statement.column_count();
    let text = |row: &rusqlite::Row<'_>| (0..columns).map(|at| Ok(format!("{:?}", row.get_ref(at)?))).collect();
    statement.query_map([], text).expect("rows").collect::<rusqlite::Result<_>>().expect("rows")
}

/// The changes in the audit log: action, user, old and new value.
pub fn audited_changes(fixture: &Fixture) -> Vec<[String; 4]> {
    let database = open_catalog(fixture);
    let query = "SELECT action, user, coalesce(old, 'NULL'), coalesce(new, 'NULL') FROM audit_log
                 WHERE decision = 'changed' ORDER BY id";
    let mut statement = database.prepare(query).expect("a query");
    let row = |row: &rusqlite::Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]);
    statement.query_map([], row).expect("rows").collect::<rusqlite::Result<_>>().expect("rows")
}

pub fn open_catalog(fixture: &Fixture) -> rusqlite::Connection {
    rusqlite::Connection::open(fixture.home.path.join("db/chorus.db")).expect("the catalog")
}

/// Parameters of `self_edit_permissions`.
fn profile(profile: impl Into<Value>) -> Value {
    json!({"profile": profile.into()})
}
