//! The context of a tool call: the daemon, and the agent and conversation that the requests name.

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_proto::methods::Method;
use chorus_proto::methods::agent::{Init, InitParams, List, ListParams};

use crate::Scope;
use crate::daemon::Daemon;

/// The conversation that `chorusctl conversations use` selected.
const SELECTED: &str = "@";

/// The name of the first agent if that of the project is taken.
const DEFAULT_NAME: &str = "default";

/// How a tool reaches the daemon.
#[derive(Debug)]
pub(crate) struct CallContext {
    pub(crate) daemon: Daemon,
    scope: Scope,
}

impl CallContext {
    pub(crate) fn new(daemon: Daemon, scope: Scope) -> Self {
        Self { daemon, scope }
    }

    /// Returns the agent to name in a request.
    pub(crate) fn agent(&self) -> Option<String> {
        self.scope.agent.clone()
    }

    /// Returns true if nobody named the agent.
    pub(crate) fn own(&self) -> bool {
        self.scope.own
    }

    /// Returns the conversation to name in a request that concerns a live context.
    pub(crate) fn conversation(&self) -> Option<String> {
        self.named_conversation().or_else(|| Some(SELECTED.to_owned()))
    }

    /// Returns the conversation that somebody named.
    pub(crate) fn named_conversation(&self) -> Option<String> {
        self.scope.conversation.clone()
    }

    /// Calls `M`.
    pub(crate) async fn call<M: Method>(&self, params: &M::Params) -> Result<M::Result> {
        self.daemon.call::<M>(params).await.map_err(say_how_to_choose)
    }

    /// Calls `M`, which begins a conversation or remembers something: if there is no agent yet, creates one first.
    pub(crate) async fn call_for_agent<M: Method>(&self, params: &M::Params) -> Result<M::Result> {
        match self.daemon.call::<M>(params).await {
            Err(error) if error.kind == ErrorKind::NoAgent && self.create_first_agent().await? => {
                self.call::<M>(params).await
            }
            result => result.map_err(say_how_to_choose),
        }
    }

    /// Creates the first agent, unless another client has just done so. Returns false if there are several agents: then a person
    /// must choose one.
    async fn create_first_agent(&self) -> Result<bool> {
        let agents = self.daemon.call::<List>(&ListParams::default()).await?.agents;
        match agents.iter().filter(|agent| agent.import_source.is_none()).count() {
            0 => {}
            // Since the request, another client has created it.
            1 => return Ok(true),
            _ => return Ok(false),
        }
        let is_taken = agents.iter().any(|agent| agent.name == self.scope.first_agent);
        let name = if is_taken { DEFAULT_NAME } else { &self.scope.first_agent };
        match self.daemon.call::<Init>(&InitParams { name: name.to_owned(), ..InitParams::default() }).await {
            Ok(_) => Ok(true),
            // Another client has created it in the meantime.
            Err(error) if error.kind == ErrorKind::AlreadyExists => Ok(true),
            Err(error) => Err(error),
        }
    }
}

/// Replaces the hint of the error that an agent must be chosen by how that is done for an MCP server.
fn say_how_to_choose(error: Error) -> Error {
    if error.kind == ErrorKind::NoAgent && error.message.starts_with("several agents") {
        return error.hint("choose one with `chorusctl agent use NAME`, or run the server with `--agent NAME`");
    }
    error
}
