//! The pure core of an agent: a state machine that turns events into effects.
//!
//! [`state::State`] takes an [`event::Event`] and returns [`effect::Effect`]s; the caller carries them out and reports
//! what came of them as further events. Nothing here reads a clock, touches the disk or the network, or spawns
//! anything, so every order of events can be tested.

#![warn(unreachable_pub)]

pub mod compaction;
pub mod compaction_extraction;
pub mod context;
mod context_edits;
pub mod continuation;
pub mod effect;
pub mod event;
mod exclusive_ops;
mod exclusive_results;
pub mod interruption_reason;
mod model_outcome;
mod partial_load;
pub mod recall;
mod resend_after_failure;
mod said_pieces;
mod settings;
pub mod state;
#[cfg(test)]
mod state_tests;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
pub mod tool_budget;
mod tool_calls;
pub mod turn;
mod turn_end;
mod turn_queue;
pub mod turn_resumption;
pub mod turn_sink;
mod turn_snapshot;
pub mod unmatched_calls;
mod usage_sum;
pub mod window;

pub use settings::{AgentSettings, UsageLimits};
pub use turn_snapshot::TurnSnapshot;
