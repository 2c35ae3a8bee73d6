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
mod unconfined;
mod workspace;

use std::fs;
use std::path::PathBuf;
use std::thread::JoinHandle;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::daemon::SandboxInfo;
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_proto::methods::send::{Send, SendParams, SendResult};
use chorus_proto::{CallError, Client, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{Daemon, Home, Need, skip_without, wait_until};
use serde_json::{Value, json};

use crate::home;

const WAYS: [&str; 2] = ["bubblewrap", "namespaces"];

/// Commands may do everything, but for the network.
const PROFILES: &str = "[permissions.any]\nallow = ['.*']\nbash = \"whole\"\n[permissions.net]\nallow = ['.*']\nbash = \"whole\"\nnetwork = true\n";

/// A daemon that confines in one way, and the agent `a`, whose commands are all allowed.
struct Rig {
    server: ModelServer,
    home: Home,
    daemon: Daemon,
}

/// How a command ended, as the model reads it.
#[derive(Debug)]
struct Told {
    text: String,
    is_error: bool,
}

impl Told {
    /// What was printed by a command that succeeded.
    fn ok(self) -> String {
        let text = self.text.strip_suffix("[exit status 0]").unwrap_or_else(|| panic!("{}", self.text)).to_owned();
        assert!(!self.is_error);
        text
    }
}

impl Rig {
    /// By each way that this machine has; says which it has not.
    fn each() -> Vec<Self> {
        WAYS.into_iter().filter_map(|way| Self::by(way, &[])).collect()
    }

    /// With more in the daemon's environment; `None` where the machine does not have the way.
    fn by(way: &str, environment: &[(&str, &str)]) -> Option<Self> {
        let rig = Self::start(way, "any", environment);
        let reached = rig.reached();
        if reached.way == way {
            return Some(rig);
        }
        skip_without(Need::Sandbox, &format!("no sandbox by {way} here: {:?}", reached.missing));
        None
    }

    fn start(way: &str, profile: &str, environment: &[(&str, &str)]) -> Self {
        Self::start_asking(way, profile, environment, "1s")
    }

    /// With another time for the answers to questions.
    fn start_asking(way: &str, profile: &str, environment: &[(&str, &str)], timeout: &str) -> Self {
        let (server, home) = (ModelServer::start(), home());
        home.write_config(&format!("approval_timeout = \"{timeout}\"\n{}{PROFILES}", server.config_toml_with("")));
        let mut command = home.command(home.bins.chorusd);
        command.env("CHORUS_SANDBOX", way).envs(environment.iter().copied());
        let daemon = Daemon::start_command(&home, command);
        let rig = Self { server, home, daemon };
        rig.agent("a", profile);
        rig
    }

    fn agent(&self, name: &str, profile: &str) {
        let init = InitParams {
            name: name.into(),
            model: Some("anthropic/claude-test".into()),
            permissions: Some(profile.into()),
            ..Default::default()
        };
        self.client().call::<Init>(&init).expect("agent.init");
    }

    fn client(&self) -> Client {
        self.daemon.client()
    }

    fn reached(&self) -> SandboxInfo {
        wait_until("the sandbox to be known", chorus_tests::DEADLINE, || {
            self.client().call::<Status>(&StatusParams::default()).expect("status").daemon.sandbox
        })
    }

    fn workspace(&self) -> PathBuf {
        self.home.agent_dir("a").join("workspace")
    }

    /// Has the model call `bash` and waits for what it reads.
    fn run(&self, command: &str) -> Told {
        self.call(&json!({"command": command}))
    }

    fn call(&self, params: &Value) -> Told {
        self.begin(params).join().expect("a client").expect("a turn");
        self.last()
    }

    /// The same beside the test.
    fn begin(&self, params: &Value) -> JoinHandle<Result<SendResult, CallError>> {
        self.server.anthropic().queue(Response::tool_call("c", "bash", params));
        self.server.anthropic().queue(Response::text(["Done."]));
        let mut client = self.client();
        client.set_timeout(Some(chorus_tests::DEADLINE * 3)).expect("a time-out");
        let params = SendParams { agent: Some("a".into()), text: "Go.".into(), ..Default::default() };
        std::thread::spawn(move || client.call::<Send>(&params))
    }

    /// The last result in the record.
    fn last(&self) -> Told {
        let messages = self.client().messages("a");
        let result = messages.into_iter().rfind(|message| message.role == Role::ToolResult).expect("a result");
        Told { text: result.content, is_error: result.is_error }
    }

    /// Waits until the command has made this file in its workspace, and gives its text.
    fn made(&self, name: &str) -> String {
        let path = self.workspace().join(name);
        wait_until(name, chorus_tests::DEADLINE, || fs::read_to_string(&path).ok().filter(|text| !text.is_empty()))
    }
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
