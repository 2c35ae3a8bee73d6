//! A connection to a server: the handshake, its tools, calls.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use rmcp::model::{CallToolRequestParams, CallToolResponse, PaginatedRequestParams, ProtocolVersion, Tool};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RoleClient, RunningServiceCancellationToken, ServiceError,
    serve_client_with_lifecycle,
};
use rmcp::transport::IntoTransport;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::handler::Handler;
use super::result_text::ToolResult;
use super::tool::MAX_TOOLS;

/// Limit on the pages of a list of tools.
const MAX_PAGES: usize = 32;
/// Limit on the tools that are looked at, of which [`MAX_TOOLS`] are offered.
const MAX_LISTED: usize = 16 * MAX_TOOLS;

/// Which handshake a server understands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// `initialize`, which nearly all servers know.
    #[default]
    Initialize,
    /// `server/discover`, of the protocol without sessions (2026-07-28).
    Discover,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) struct ConnectError {
    pub message: String,
    /// The server answered, but does not know this handshake.
    pub unknown_handshake: bool,
}

/// A connection that is up. Dropping it closes it.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    pub tools_changed: Arc<Notify>,
    cancellation: RunningServiceCancellationToken,
    /// Ends when the connection is closed, by either side. Several places wait for it, one after the other.
    ended: Shared<BoxFuture<'static, ()>>,
}

/// Calls tools over a connection.
#[derive(Debug, Clone)]
pub(crate) struct Caller(Peer<RoleClient>);

/// How a call ended without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallFailure {
    Cancelled,
    TimedOut,
    Failed(String),
}

impl Connection {
    /// Does the handshake.
    pub(crate) async fn open<T, E, A>(transport: T, handshake: Handshake) -> Result<Self, ConnectError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let handler = Handler::default();
        let tools_changed = handler.tools_changed.clone();
        let mode = match handshake {
            Handshake::Initialize => ClientLifecycleMode::Initialize,
            Handshake::Discover => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
        };
        let running = serve_client_with_lifecycle(handler, transport, mode).await.map_err(|e| ConnectError {
            unknown_handshake: matches!(e, ClientInitializeError::JsonRpcError(_)),
            message: error_text(&e),
        })?;
        let (peer, cancellation) = (running.peer().clone(), running.cancellation_token());
        let ended = async move { drop(running.waiting().await) }.boxed().shared();
        Ok(Self { peer, tools_changed, cancellation, ended })
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller(self.peer.clone())
    }

    /// Waits until the server has closed the connection. Cancel safe.
    pub(crate) async fn closed(&self) {
        self.ended.clone().await;
    }

    /// Closes the connection, and waits for at most `limit`.
    pub(crate) async fn close(self, limit: Duration) {
        self.cancellation.cancel();
        let _ = tokio::time::timeout(limit, self.ended).await;
    }
}

impl Caller {
    /// Returns the tools that the server lists; of a server with very many, the first.
    pub(crate) async fn list_tools(&self) -> Result<Vec<Tool>, String> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.0.list_tools(Some(params)).await.map_err(|e| error_text(&e))?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() >= MAX_LISTED {
                break;
            }
        }
        Ok(tools)
    }

    /// Calls a tool. If this ends early, the server is told that the call is cancelled.
    pub(crate) async fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, CallFailure> {
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let answered = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(CallFailure::Cancelled),
            answered = tokio::time::timeout(limit, self.0.call_tool_once(params)) => answered,
        };
        match answered {
            Err(_) => Err(CallFailure::TimedOut),
            Ok(Ok(CallToolResponse::Complete(result))) => Ok(ToolResult::new(result)),
            Ok(Ok(CallToolResponse::InputRequired(_))) => {
                Err(CallFailure::Failed("it asks for input of a person, which is not supported".into()))
            }
            Ok(Ok(_)) => Err(CallFailure::Failed("it answered with a task, which is not supported".into())),
            Ok(Err(ServiceError::McpError(error))) => Err(CallFailure::Failed(error.message.into_owned())),
            Ok(Err(ServiceError::TransportClosed)) => {
                Err(CallFailure::Failed("the server ended before it answered".into()))
            }
            Ok(Err(error)) => Err(CallFailure::Failed(error_text(&error))),
        }
    }
}

/// Limit on the characters of an error text.
const MAX_ERROR_CHARS: usize = 500;

/// Returns an error with its causes on one line.
pub(crate) fn error_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MAX_ERROR_CHARS).collect()
}
