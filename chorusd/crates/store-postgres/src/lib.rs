//! The journal of live contexts and tables of the catalog in PostgreSQL, for several daemons that share the agents. See
//! docs/design/ownership.md for who may write what.
//!
//! Each process that uses the database is a *node* with a boot number. It owns the agents that it claimed; every
//! transaction that changes something of an agent first locks the row of its epoch and compares it, so that a node that
//! was overtaken writes nothing more.

#![warn(unreachable_pub)]

mod append;
mod batch;
mod calls;
mod catalog;
mod channel_binding;
mod connect_errors;
mod connection;
mod errors;
mod event_log;
mod interface;
mod journal;
mod late_nodes;
mod migrations;
mod node;
mod node_list;
mod owned_agents;
mod ownership;
mod param;
mod plain_append;
mod record_reader;
mod remote_events;
mod route;
mod rows;
mod ssl_params;
mod statement;
mod tls;
mod url_source;
mod writer;

pub use catalog::{AgentTables, DiscordLease, DiscordLeases, PostgresDiscord};
pub use chorus_journal::{Claim, Owner};
pub use connection::DatabaseUrl;
pub use journal::PostgresJournal;
pub use migrations::migrate;
pub use node::{HEARTBEAT_INTERVAL, HOLD_LIMIT, NodeName, STALE_AFTER};

/// Called when this process may write nothing more: another one started as the same node, or the database lost what it
/// had committed.
pub type OnFatal = std::sync::Arc<dyn Fn(chorus_base::error::Error) + Send + Sync>;
