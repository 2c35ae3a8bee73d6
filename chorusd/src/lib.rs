//! The Chorus daemon. See docs/ARCHITECTURE.md.

#![warn(unreachable_pub)]

pub mod cli;
pub mod daemon;
#[cfg(not(feature = "discord"))]
mod discord_stub;
mod mcp;
pub mod server;

pub use cli::main;
