//! The Chorus daemon. See docs/ARCHITECTURE.md.

pub mod cli;
pub mod daemon;
pub mod server;

pub use cli::main;
