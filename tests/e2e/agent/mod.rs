//! Agents: made, listed, chosen, configured, renamed, destroyed, revived.

mod config;
mod destroy;
pub mod export_import;
mod first;
mod init;
mod select;
