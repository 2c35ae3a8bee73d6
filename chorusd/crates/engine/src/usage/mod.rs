//! Usage of models: records every call ([`UsageTracker::record_call`]) and checks the daily limits before the next one
//! ([`UsageTracker::check_limits`]). Days are those of the machine's time zone. [`TokenCounter`] counts prompts before
//! they are sent.

mod calibration;
mod day;
mod embedding_call;
mod limits;
mod recent_map;
mod token_counter;
mod tracker;
mod usage_row;

pub use chorus_catalog::{CallKind, Spending, UsageRow};

pub use calibration::{Calibration, Sample};
pub use day::Day;
pub use embedding_call::EmbeddingCall;
pub use token_counter::{PromptCount, PromptFingerprint, TokenCounter};
pub use tracker::UsageTracker;
pub use usage_row::ModelCallInfo;
