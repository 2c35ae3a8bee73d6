//! One server: its state, the task that keeps it running, and calls.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::Backoff;
use chorus_config::{McpServer, McpTransport};
use chorus_redact::Redactor;
use chorus_sandbox::Sandbox;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::{CallFailure, Caller, ConnectError, Connection, Handshake};
use super::http;
use super::program::{ProgramPlace, RunningProgram};
use super::result_text::ToolResult;
use super::tool::{McpTool, ToolList};

/// Limit of a start: handshake and list of tools. A program may have to be downloaded first.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Wait after a first failure, which doubles up to the second value.
const RETRY_WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// A server that ran for this long starts again without a longer wait.
const STABLE_AFTER: Duration = Duration::from_secs(60);
/// How long closing a connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Limit of listing the tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
const MIN_LIST_INTERVAL: Duration = Duration::from_secs(1);

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// No agent has needed it yet.
    Idle,
    Starting,
    Running,
    /// It could not be started or has ended, for this reason. It is tried again at `retry_at`.
    Failed {
        why: String,
        retry_at: Instant,
    },
    Stopped,
}

/// A server for `status` and `doctor`.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    pub name: String,
    pub state: ServerState,
    /// Tools that it offers, or last offered.
    pub tools: usize,
    /// Tools that are not offered, because a limit is exceeded.
    pub left_out: usize,
}

#[derive(Debug, Clone)]
struct Snapshot {
    state: ServerState,
    /// The last known tools. They stay while the server starts again.
    tools: Arc<[Arc<McpTool>]>,
    left_out: usize,
    caller: Option<Caller>,
}

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    pub config: McpServer,
    snapshot: watch::Sender<Snapshot>,
}

/// The services that the task of a server uses.
#[derive(Debug, Clone)]
pub(crate) struct ServerServices {
    pub home: Arc<std::path::Path>,
    pub sandbox: Arc<Sandbox>,
    pub redactor: Arc<Redactor>,
    pub stop: CancellationToken,
}

impl Server {
    pub(crate) fn new(config: McpServer) -> Self {
        let snapshot = Snapshot { state: ServerState::Idle, tools: Arc::default(), left_out: 0, caller: None };
        Self { config, snapshot: watch::Sender::new(snapshot) }
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let now = self.snapshot.borrow();
        ServerStatus {
            name: self.config.name.clone(),
            state: now.state.clone(),
            tools: now.tools.len(),
            left_out: now.left_out,
        }
    }

    /// Returns the tools that are known.
    pub(crate) fn tools(&self) -> Arc<[Arc<McpTool>]> {
        self.snapshot.borrow().tools.clone()
    }

    /// Marks the server as starting. Returns false if somebody has done that before.
    pub(crate) fn claim_start(&self) -> bool {
        self.snapshot.send_if_modified(|now| {
            let is_idle = now.state == ServerState::Idle;
            if is_idle {
                now.state = ServerState::Starting;
            }
            is_idle
        })
    }

    /// Waits until the server runs or a start has failed.
    pub(crate) async fn settled(&self) {
        let mut changes = self.snapshot.subscribe();
        let is_settled = |now: &Snapshot| !matches!(now.state, ServerState::Idle | ServerState::Starting);
        let _ = changes.wait_for(is_settled).await;
    }

    /// Calls a tool, within the time limit of the server.
    pub(crate) async fn call(
        &self,
        tool: &McpTool,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, String> {
        let (name, limit) = (&self.config.name, self.config.timeout);
        let deadline = Instant::now() + limit;
        let timed_out = || format!("the MCP server {name} did not answer within {} s", limit.as_secs_f64());
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err("the call was cancelled".into()),
            () = tokio::time::sleep_until(deadline) => return Err(timed_out()),
            () = self.settled() => {}
        }
        let caller = {
            let now = self.snapshot.borrow();
            let Some(caller) = now.caller.clone() else {
                let why = match &now.state {
                    ServerState::Failed { why, .. } => format!(": {why}"),
                    _ => String::new(),
                };
                return Err(format!("the MCP server {name} is not available{why}"));
            };
            // What was approved is what this definition says.
            if !now.tools.iter().any(|current| current.name == tool.name && current.definition == tool.definition) {
                return Err(format!("not done: the MCP server {name} has changed the tool since; call it again"));
            }
            caller
        };
        let rest = deadline.saturating_duration_since(Instant::now());
        caller.call_tool(&tool.name, arguments, rest, cancel).await.map_err(|failure| match failure {
            CallFailure::Cancelled => "the call was cancelled".into(),
            CallFailure::TimedOut => timed_out(),
            CallFailure::Failed(why) => format!("the MCP server {name} failed: {why}"),
        })
    }

    /// Keeps the server running until the daemon stops.
    pub(crate) async fn run(self: Arc<Self>, services: ServerServices) {
        let mut backoff = Backoff::new(RETRY_WAIT.0, RETRY_WAIT.1);
        let (mut handshake, mut last_failure) = (Handshake::default(), String::new());
        loop {
            let began = Instant::now();
            let failure = self.run_once(&services, handshake).await;
            if services.stop.is_cancelled() {
                break;
            }
            if failure.unknown_handshake && handshake == Handshake::Initialize {
                handshake = Handshake::Discover;
                continue;
            }
            handshake = Handshake::default();
            if began.elapsed() >= STABLE_AFTER {
                backoff.reset();
            }
            let wait = backoff.next_wait();
            let why = services.redactor.redact_text(&failure.message).into_owned();
            if why != last_failure {
                tracing::warn!(server = %self.config.name, retry_in = ?wait, "the MCP server is not running: {why}");
                last_failure.clone_from(&why);
            }
            self.update(|now| now.state = ServerState::Failed { why, retry_at: Instant::now() + wait });
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = services.stop.cancelled() => break,
            }
            self.update(|now| now.state = ServerState::Starting);
        }
        self.update(|now| now.state = ServerState::Stopped);
    }

    /// Starts the server and waits for its end. Returns why it ended.
    async fn run_once(&self, services: &ServerServices, handshake: Handshake) -> ConnectError {
        let mut link = tokio::select! {
            () = services.stop.cancelled() => return failure("stopped"),
            connected = tokio::time::timeout(START_TIMEOUT, self.connect(services, handshake)) => match connected {
                Ok(Ok(link)) => link,
                Ok(Err(error)) => return error,
                Err(_) => return failure("it did not complete the handshake in time"),
            },
        };
        let ended = self.serve(&mut link, services).await;
        self.update(|now| now.caller = None);
        link.stop().await;
        failure(&ended)
    }

    async fn connect(&self, services: &ServerServices, handshake: Handshake) -> Result<Link, ConnectError> {
        match &self.config.transport {
            McpTransport::Program(program) => {
                let (server, home, sandbox) = (&*self.config.name, &*services.home, &services.sandbox);
                let place = ProgramPlace { server, home, sandbox };
                RunningProgram::start(program, &place, handshake).await.map(Link::Program)
            }
            McpTransport::Http(config) => http::connect(config, handshake, &services.redactor).await.map(Link::Http),
        }
    }

    /// Lists the tools, again after each change, until the server ends. Returns why it ended.
    async fn serve(&self, link: &mut Link, services: &ServerServices) -> String {
        let (caller, changed) = (link.connection().caller(), link.connection().tools_changed.clone());
        loop {
            let listed = tokio::select! {
                listed = tokio::time::timeout(LIST_TIMEOUT, caller.list_tools()) => listed,
                why = link.ended() => return why,
                () = services.stop.cancelled() => return "stopped".into(),
            };
            match listed {
                Ok(Ok(tools)) => self.publish(ToolList::new(&self.config.name, tools), &caller),
                Ok(Err(why)) => return format!("cannot list its tools: {why}"),
                Err(_) => return "it did not list its tools in time".into(),
            }
            tokio::select! {
                () = changed.notified() => {}
                why = link.ended() => return why,
                () = services.stop.cancelled() => return "stopped".into(),
            }
            // However often a server says that its tools have changed, they are listed once in this time.
            tokio::select! {
                () = tokio::time::sleep(MIN_LIST_INTERVAL) => {}
                why = link.ended() => return why,
                () = services.stop.cancelled() => return "stopped".into(),
            }
        }
    }

    fn publish(&self, list: ToolList, caller: &Caller) {
        let count = list.tools.len();
        if list.left_out > 0 {
            tracing::warn!(server = %self.config.name, left_out = list.left_out, "not all tools of the MCP server are offered");
        }
        tracing::debug!(server = %self.config.name, tools = count, "listed the tools of the MCP server");
        self.update(|now| {
            now.state = ServerState::Running;
            now.tools = list.tools.into_iter().map(Arc::new).collect();
            now.left_out = list.left_out;
            now.caller = Some(caller.clone());
        });
    }

    fn update(&self, change: impl FnOnce(&mut Snapshot)) {
        self.snapshot.send_modify(change);
    }
}

/// A connection, and what must be ended with it.
enum Link {
    Program(RunningProgram),
    Http(Connection),
}

impl Link {
    fn connection(&self) -> &Connection {
        match self {
            Self::Program(program) => &program.connection,
            Self::Http(connection) => connection,
        }
    }

    /// Waits for its end, and returns the reason. Cancel safe.
    async fn ended(&mut self) -> String {
        match self {
            Self::Program(program) => program.ended().await,
            Self::Http(connection) => {
                connection.closed().await;
                "the connection was closed".into()
            }
        }
    }

    async fn stop(self) {
        match self {
            Self::Program(program) => program.stop().await,
            Self::Http(connection) => connection.close(CLOSE_TIMEOUT).await,
        }
    }
}

fn failure(message: &str) -> ConnectError {
    ConnectError { message: message.to_owned(), unknown_handshake: false }
}
