//! The Chorus daemon. See docs/ARCHITECTURE.md.

#![warn(unreachable_pub)]

pub mod cli;
mod config_file;
mod copy_store;
mod create_certificates;
pub mod daemon;
#[cfg(not(feature = "discord"))]
mod discord_stub;
mod mcp;
mod read_database;
pub mod server;
mod top;
#[cfg(not(feature = "otlp"))]
mod traces_stub;
#[cfg(feature = "web")]
mod web;
#[cfg(not(feature = "web"))]
#[path = "web_stub.rs"]
mod web;

pub use cli::main;
