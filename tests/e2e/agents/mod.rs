//! Agents: made, listed, chosen, configured, renamed, destroyed, revived.

mod config;
mod destroy;
mod init;
mod which;
