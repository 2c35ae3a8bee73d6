//! All configured servers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chorus_config::McpServer;
use chorus_redact::Redactor;
use chorus_runtime::SpawnTracked as _;
use chorus_sandbox::Sandbox;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::result_text::ToolResult;
use super::server::{Server, ServerServices, ServerStatus};
use super::tool::McpTool;

/// The servers of config.toml. Each is started when an agent first needs it.
#[derive(Debug)]
pub struct McpServers {
    servers: BTreeMap<String, Arc<Server>>,
    services: ServerServices,
    tasks: TaskTracker,
}

impl McpServers {
    #[must_use]
    pub fn new(
        configured: &BTreeMap<String, McpServer>,
        home: &Path,
        sandbox: Arc<Sandbox>,
        redactor: Arc<Redactor>,
    ) -> Self {
        let server = |(name, config): (&String, &McpServer)| (name.clone(), Arc::new(Server::new(config.clone())));
        let services = ServerServices { home: home.into(), sandbox, redactor, stop: CancellationToken::new() };
        Self { servers: configured.iter().map(server).collect(), services, tasks: TaskTracker::new() }
    }

    /// Starts those of these servers that do not run yet, and waits until all of them do or have failed, for at most
    /// `wait`. Names that are not configured are ignored.
    pub async fn start(&self, names: &[String], wait: Duration) {
        for server in self.named(names).filter(|server| server.claim_start()) {
            self.tasks.spawn_tracked(server.clone().run(self.services.clone()));
        }
        let settled = async {
            for server in self.named(names) {
                server.settled().await;
            }
        };
        let _ = tokio::time::timeout(wait, settled).await;
    }

    /// Returns the tools of these servers that are known now, in a fixed order.
    #[must_use]
    pub fn tools(&self, names: &[String]) -> Vec<Arc<McpTool>> {
        self.named(names).flat_map(|server| server.tools().to_vec()).collect()
    }

    /// Returns true if a server is configured.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.servers.contains_key(name)
    }

    /// Returns true if a server is a program on this machine.
    #[must_use]
    pub fn is_program(&self, name: &str) -> bool {
        self.servers.get(name).is_some_and(|server| server.config.is_program())
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// The reason, for the model.
    pub async fn call(
        &self,
        tool: &McpTool,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, String> {
        match self.servers.get(&tool.server) {
            Some(server) => server.call(tool, arguments, cancel).await,
            None => Err(format!("unknown MCP server {}", tool.server)),
        }
    }

    /// Returns the state of all servers.
    #[must_use]
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.servers.values().map(|server| server.status()).collect()
    }

    /// Ends all servers, and waits until they have ended.
    pub async fn stop(&self) {
        self.services.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Returns each of these servers once, in the order of all servers.
    fn named<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = &'a Arc<Server>> {
        self.servers.values().filter(|server| names.contains(&server.config.name))
    }
}
