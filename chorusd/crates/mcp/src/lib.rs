//! Chorus as an MCP server on standard input and output, for coding tools that speak the Model Context Protocol:
//! searching, reading and keeping conversations. `chorusctl mcp` runs it in a process of its own, one for each client.
//!
//! Invariant: it is an ordinary client of the daemon. Whatever it does is a request over the daemon's socket; it opens no
//! file of the home. Standard output carries only the protocol. Without `--write` nothing is changed.
//!
//! Absent on purpose: the store, the engine, HTTP, prompts, and state that outlives a request. The SDK (`rmcp`) is named in
//! this crate only.

#![warn(unreachable_pub)]

mod call;
mod daemon;
mod resources;
mod server;
mod text;
mod tools;

use std::path::PathBuf;

use chorus_base::error::{Error, Result};
use chorus_proto::paths::InstancePaths;
use rmcp::service::{ServerInitializeError, serve_server};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;

use daemon::Daemon;
use server::McpServer;

/// The limit on bytes of a message from the client: what a request of the daemon can hold, escaped.
const MAX_LINE_BYTES: usize = 64 << 20;

/// Settings of a server, from the command line.
#[derive(Debug)]
pub struct Options {
    pub places: InstancePaths,
    /// The socket, if the command line names one.
    pub socket: Option<PathBuf>,
    /// The program to start if no daemon runs; without it none is started.
    pub daemon_program: Option<PathBuf>,
    pub scope: Scope,
    /// Offer the tools that change something.
    pub can_write: bool,
}

/// The agent and the conversation that requests name.
#[derive(Debug)]
pub struct Scope {
    /// The agent to name; the daemon chooses if there is none.
    pub agent: Option<String>,
    /// Nobody named the agent, so imported conversations are included.
    pub own: bool,
    pub conversation: Option<String>,
    /// The name of the agent that is created for the first message if there is none.
    pub first_agent: String,
}

/// Serves one client, until it closes standard input.
///
/// # Errors
/// There is no runtime, or the client does not speak the protocol.
pub fn run(options: Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Error::io("cannot start a runtime", &e))?;
    let served = runtime.block_on(serve(options));
    // A read of standard input that waits must not delay the end.
    runtime.shutdown_background();
    served
}

async fn serve(options: Options) -> Result<()> {
    let daemon = Daemon::new(options.places, options.socket, options.daemon_program);
    let server = McpServer::new(daemon, options.scope, options.can_write);
    let (input, output) = stdio_pipes();
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_LINE_BYTES);
    let running = match serve_server(server, transport).await {
        Ok(running) => running,
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => {
            return Err(Error::invalid(format!("not a client of the Model Context Protocol: {}", short(&error)))
                .hint("coding tools run `chorusctl mcp`; set one up with: chorusctl mcp install TOOL"));
        }
    };
    running.waiting().await.map(drop).map_err(|e| Error::internal(e.to_string()))
}

/// Returns the first words of an error that may quote all that the client sent.
fn short(error: &ServerInitializeError) -> String {
    let text = error.to_string();
    text.split(':').next().unwrap_or_default().to_owned()
}
