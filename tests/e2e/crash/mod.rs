//! P1: what was acknowledged survives `kill -9`: nothing lost, nothing doubled, nothing reordered.

mod idempotency_keys;
pub mod oracle;
mod shared_agent;
mod single_client;
