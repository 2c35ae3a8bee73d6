//! The Chorus daemon. See docs/ARCHITECTURE.md.

pub mod agent;
pub mod agent_archive;
pub mod approvals;
pub mod backup;
pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
mod discord;
pub mod error;
pub mod git;
pub mod lifecycle;
pub mod llm;
mod locale;
mod malloc_trim;
pub mod message;
pub mod ops;
pub mod permissions;
pub mod redact;
pub mod requester;
pub mod sandbox;
pub mod server;
pub mod session;
pub mod store;
pub mod summary;
pub mod tasks;
pub mod template;
pub mod token_estimate;
pub mod tools;
pub mod usage;

pub use cli::main;
