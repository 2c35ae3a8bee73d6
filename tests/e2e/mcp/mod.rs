//! `chorusctl mcp`: the server, spoken to over its pipes, and its entry in the configuration of coding tools.

mod client;
mod install;
mod protocol;
mod resources;
mod tools;

use client::McpClient;
