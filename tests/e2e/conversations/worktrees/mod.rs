//! `workspace = "worktree"`: each conversation works in a git worktree and on a branch of its own.

mod closing;
mod confinement;
mod creation;
mod merging;

use std::fs;
use std::path::{Path, PathBuf};

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::methods::conversations::{Close, CloseParams, CloseResult, Merge, MergeParams, MergeResult};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::{CallError, Role};
use chorus_tests::Fixture;
use chorus_tests::model_server::Response;
use serde_json::{Value, json};

use super::open;
use crate::home;
use crate::sandbox::PROFILES;
use crate::tools::git::git;

/// Starts a daemon with a model, and the agent `a` with these conversations, each in a worktree.
fn start_fixture(conversations: &[&str]) -> Fixture {
    let fixture = Fixture::builder(home()).models().tables(PROFILES).start();
    fixture.create_agent("a", Some("any"));
    prepare(&fixture);
    for name in conversations {
        open(&mut fixture.client(), name);
    }
    fixture
}

/// Gives conversations worktrees. Summaries of saves take none of the responses that a test has queued.
fn prepare(fixture: &Fixture) {
    fixture.models().set_summary_response(Response::error(500, "no summary"));
    set_mode(fixture, "worktree");
}

fn set_mode(fixture: &Fixture, mode: &str) {
    let params = ConfigParams { name: "a".into(), key: Some("workspace".into()), value: Some(mode.into()) };
    fixture.client().call::<Config>(&params).expect("agent.config");
}

/// The directory of a worktree.
fn worktree(fixture: &Fixture, name: &str) -> PathBuf {
    fixture.home.agent_dir("a").join("worktrees").join(name)
}

/// The result of a call that the model of a conversation makes, and whether it is an error.
fn call_tool(fixture: &Fixture, conversation: &str, tool: &str, params: Value) -> (String, bool) {
    fixture.answer(Response::tool_call("c1", tool, &params));
    fixture.reply("Done.");
    send(fixture, conversation);
    last_result(fixture, conversation)
}

fn send(fixture: &Fixture, conversation: &str) {
    let conversation = Some(conversation.to_owned());
    let params = SendParams { agent: Some("a".into()), conversation, text: "Go.".into(), ..Default::default() };
    fixture.client().call::<Send>(&params).expect("a turn");
}

fn last_result(fixture: &Fixture, conversation: &str) -> (String, bool) {
    let params = ShowParams { agent: Some("a".into()), conversation: Some(conversation.into()), ..Default::default() };
    let messages = fixture.client().call::<Show>(&params).expect("context.show").messages;
    let result = messages.into_iter().rfind(|message| message.role == Role::ToolResult).expect("a result");
    (result.content, result.is_error)
}

/// A call that must succeed.
#[track_caller]
fn expect_tool(fixture: &Fixture, conversation: &str, tool: &str, params: Value) -> String {
    let (text, is_error) = call_tool(fixture, conversation, tool, params);
    assert!(!is_error, "{conversation} {tool}: {text}");
    text
}

/// Has a conversation create a file.
#[track_caller]
fn write(fixture: &Fixture, conversation: &str, path: &str, content: &str) {
    expect_tool(fixture, conversation, "create_file", json!({"path": path, "content": content}));
}

/// Has a conversation commit everything.
#[track_caller]
fn commit(fixture: &Fixture, conversation: &str, message: &str) {
    expect_tool(fixture, conversation, "git_commit", json!({"message": message}));
}

/// Has a conversation run a command; the output, and whether it failed.
fn bash(fixture: &Fixture, conversation: &str, command: &str) -> (String, bool) {
    call_tool(fixture, conversation, "bash", json!({"command": command}))
}

fn merge(fixture: &Fixture, conversation: &str) -> Result<MergeResult, CallError> {
    fixture.client().call::<Merge>(&MergeParams { agent: Some("a".into()), conversation: conversation.into() })
}

fn close(fixture: &Fixture, conversation: &str) -> CloseResult {
    let params = CloseParams { agent: Some("a".into()), conversation: conversation.into() };
    fixture.client().call::<Close>(&params).expect("conversations.close")
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// What git says of the workspace's files; empty if they are those of the newest commit.
fn status(fixture: &Fixture) -> String {
    git(&fixture.workspace("a"), &["status", "--porcelain"])
}

fn head(fixture: &Fixture, of: &str) -> String {
    git(&fixture.workspace("a"), &["rev-parse", of])
}
