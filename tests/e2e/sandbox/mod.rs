//! Commands of agents, seen from inside: through the socket, a scripted model and the real binaries, by every way that the
//! machine has.

mod cgroups;
mod cleanup;
mod concurrency;
mod drop;
mod isolation;
mod kernel_memory;
mod limits;
mod locale;
mod memory;
mod replaced_program;
mod unconfined;
mod workspace;

use std::fs;

use chorus_proto::methods::daemon::SandboxInfo;
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_tests::model_server::Response;
use chorus_tests::{Fixture, Need, RunningTurn, skip_without, wait_until};
use serde_json::{Value, json};

use crate::home;

const WAYS: [&str; 2] = ["bubblewrap", "namespaces"];

/// Commands may do everything, but for the network.
pub const PROFILES: &str = "[permissions.any]\nallow = ['.*']\nbash = \"whole\"\n[permissions.net]\nallow = ['.*']\nbash = \"whole\"\nnetwork = true\n";

/// How a command ended, as the model reads it.
#[derive(Debug)]
pub struct ToolOutput {
    text: String,
    is_error: bool,
}

impl ToolOutput {
    /// What was printed by a command that succeeded.
    fn ok(self) -> String {
        let text = self.text.strip_suffix("[exit status 0]").unwrap_or_else(|| panic!("{}", self.text)).to_owned();
        assert!(!self.is_error);
        text
    }
}

/// By each way that this machine has; says which it has not.
pub fn each_sandbox() -> Vec<Fixture> {
    WAYS.into_iter().filter_map(|way| start_sandbox(way, &[])).collect()
}

/// With more in the daemon's environment; `None` where the machine does not have the way.
pub fn start_sandbox(way: &str, environment: &[(&str, &str)]) -> Option<Fixture> {
    let fixture = start_fixture(way, "any", environment);
    let reached = sandbox_info(&fixture);
    if reached.way == way {
        return Some(fixture);
    }
    skip_without(Need::Sandbox, &format!("no sandbox by {way} here: {:?}", reached.missing));
    None
}

pub fn start_fixture(way: &str, profile: &str, environment: &[(&str, &str)]) -> Fixture {
    start_fixture_with_timeout(way, profile, environment, "1s")
}

/// With another time for the answers to questions.
pub fn start_fixture_with_timeout(way: &str, profile: &str, environment: &[(&str, &str)], timeout: &str) -> Fixture {
    let builder = Fixture::builder(home()).models().keys(&format!("approval_timeout = \"{timeout}\"")).tables(PROFILES);
    let builder = builder.model("anthropic/claude-test").env("CHORUS_SANDBOX", way);
    let fixture = environment.iter().fold(builder, |builder, (name, value)| builder.env(name, value)).start();
    fixture.create_agent("a", Some(profile));
    fixture
}

pub fn sandbox_info(fixture: &Fixture) -> SandboxInfo {
    wait_until("the sandbox to be known", chorus_tests::DEADLINE, || {
        fixture.client().call::<Status>(&StatusParams::default()).expect("status").daemon.sandbox
    })
}

/// Has the model call `bash` and waits for what it reads.
pub fn run_command(fixture: &Fixture, command: &str) -> ToolOutput {
    call_bash(fixture, &json!({"command": command}))
}

pub fn call_bash(fixture: &Fixture, params: &Value) -> ToolOutput {
    spawn_bash(fixture, params).join().expect("a client").expect("a turn");
    last_result(fixture)
}

/// The same beside the test.
pub fn spawn_bash(fixture: &Fixture, params: &Value) -> RunningTurn {
    fixture.models().anthropic().queue(Response::tool_call("c", "bash", params));
    fixture.models().anthropic().queue(Response::text(["Done."]));
    fixture.spawn_send("a", "Go.")
}

/// The last result in the record.
pub fn last_result(fixture: &Fixture) -> ToolOutput {
    let result = fixture.tool_results("a").pop().expect("a result");
    ToolOutput { text: result.content, is_error: result.is_error }
}

/// Waits until the command has made this file in its workspace, and gives its text.
pub fn wait_for_file(fixture: &Fixture, name: &str) -> String {
    let path = fixture.workspace("a").join(name);
    wait_until(name, chorus_tests::DEADLINE, || fs::read_to_string(&path).ok().filter(|text| !text.is_empty()))
}

/// The processes of this machine whose command line has `mark` in it.
fn running(mark: &str) -> Vec<u32> {
    let of = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&line).contains(mark).then_some(pid)
    };
    fs::read_dir("/proc").expect("/proc").flatten().filter_map(of).filter(|pid| *pid != std::process::id()).collect()
}

/// Waits until no process has `mark` in its command line.
fn gone(mark: &str) {
    wait_until("all processes to end", chorus_tests::DEADLINE, || running(mark).is_empty().then_some(()));
}

/// Something to find processes by, that no other test has.
fn mark() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    // A length of time that nobody else sleeps.
    format!("{}{number:02}.{:05}", 9000, std::process::id() % 100_000)
}
