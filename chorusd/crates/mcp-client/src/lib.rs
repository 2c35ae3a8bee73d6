//! The client of servers of the Model Context Protocol (MCP): starts those of config.toml when an agent first needs them,
//! keeps them running, and calls their tools.
//!
//! A server is started once, whichever agents use it. Nothing here knows of agents and permissions: what calls a tool has
//! asked for permission. What a server sends is never trusted: names, descriptions, schemas and results are bounded.

#![warn(unreachable_pub)]

mod connection;
mod handler;
mod http;
mod program;
mod result_text;
mod server;
mod servers;
mod stderr_log;
mod tool;

pub use result_text::ToolResult;
pub use server::{ServerState, ServerStatus};
pub use servers::McpServers;
pub use tool::{McpTool, TOOL_NAME_PREFIX};
