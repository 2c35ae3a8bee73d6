//! Everything that Chorus promises, shown on the real binaries: a file for each part or promise.

mod agent;
mod approvals;
mod audit;
mod backup;
mod cancel;
mod capture;
mod chat;
mod cli;
mod cluster;
mod compatibility;
mod config;
mod context;
mod conversations;
mod crash;
mod daemon;
mod discord;
mod docs;
mod doctor;
mod events;
mod faults;
mod fuzz;
mod hooks;
mod host;
mod instance;
mod journal;
mod mcp;
mod memory;
mod metrics;
mod models;
mod notes;
mod objects;
mod peers;
mod permissions;
mod real_data;
mod redact;
mod sandbox;
mod schedule;
mod search;
mod send;
mod session;
mod settings;
mod socket;
mod stories;
mod sync;
mod system_calls;
mod tasks;
mod tidy;
mod tools;
mod top;
mod tour;
#[cfg(feature = "otlp")]
mod traces;
mod trash;
mod usage;
mod web;

/// An empty home around the binaries of this package.
fn home() -> chorus_tests::Home {
    chorus_tests::home!()
}
