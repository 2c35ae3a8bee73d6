//! A model of how the nodes of a cluster own agents: which node may write for an agent, and how that changes.
//!
//! docs/design/ownership.md describes the protocol, which `store-postgres` implements. `state` is what the database and the nodes hold, `action` what can happen next,
//! `database` and `step` what it changes, `setting` how much of everything there is and which rule is left out. The tests
//! check every state that can be reached.
//!
//! Invariant: a pure function of state and action; no clock, no random number. Absent on purpose: the contents of messages,
//! PostgreSQL itself, the network between nodes, the implementation.

pub mod action;
mod database;
pub mod properties;
pub mod setting;
pub mod state;
pub mod step;
mod symmetry;

#[cfg(test)]
mod checks;
#[cfg(test)]
mod counterexamples;
#[cfg(test)]
mod progress;
#[cfg(test)]
mod report;
