//! The Chorus daemon. docs/ARCHITECTURE.md is the map.

pub mod agent;
pub mod approvals;
pub mod archive;
pub mod backup;
pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
mod discord;
pub mod estimate;
pub mod failure;
pub mod git;
pub mod lifecycle;
pub mod llm;
mod locale;
mod memory;
pub mod message;
pub mod ops;
pub mod permissions;
pub mod redact;
pub mod sandbox;
pub mod server;
pub mod session;
pub mod store;
pub mod summary;
pub mod tasks;
pub mod template;
pub mod tools;
pub mod usage;
pub mod who;

pub use cli::main;
