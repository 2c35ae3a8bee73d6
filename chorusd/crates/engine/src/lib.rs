//! Agents at work: the actors that carry out what the state machine decides, their tools, tasks and approvals, and one
//! operation for each method of the protocol ([`ops`]).
//!
//! The front doors (the socket and Discord) call the operations; nothing here knows of either.

#![warn(unreachable_pub)]

pub mod agent;
pub mod agent_archive;
pub mod agent_template;
pub mod approvals;
mod background_thread;
pub mod backup;
pub mod capture;
pub mod git_init;
mod keyed_mutex;
pub mod lifecycle;
pub mod ops;
pub mod search;
pub mod semantic;
pub mod tasks;
pub mod tools;
pub mod traces;
pub mod usage;

pub use keyed_mutex::KeyedMutex;
