//! The Chorus daemon. docs/ARCHITECTURE.md is the map.

pub mod agent;
pub mod clock;
pub mod config;
pub mod failure;
pub mod message;
pub mod session;
pub mod store;
pub mod summary;

pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
