//! The pure core of an agent: a state machine that turns events into effects.
//!
//! [`state::State`] takes an [`event::Event`] and returns [`effect::Effect`]s; the caller carries them out and reports
//! what came of them as further events. Nothing here reads a clock, touches the disk or the network, or spawns
//! anything, so every order of events can be tested.

#![warn(unreachable_pub)]

pub mod compaction;
pub mod compaction_notes;
pub mod context;
mod context_edits;
pub mod effect;
pub mod event;
mod exclusive_ops;
mod exclusive_results;
pub mod interruption;
mod model_reply;
mod partial_load;
mod resent_message;
pub mod resume_compact;
mod settings;
pub mod state;
#[cfg(test)]
mod state_tests;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
pub mod tool_budget;
mod tool_calls;
pub mod tool_pairing;
pub mod turn;
mod turn_end;
mod turn_queue;
pub mod turn_resumption;
pub mod turn_sink;
mod turn_snapshot;
mod usage_sum;
pub mod window;

pub use settings::{AgentSettings, UsageLimits};
pub use turn_snapshot::TurnSnapshot;
