//! Events before they have a number.

use chorus_proto::EventType;
use jiff::Timestamp;
use serde_json::Value;

/// Number of events that can be replayed.
pub const MAX_REPLAYED_EVENTS: u64 = 10_000;

/// An event without a number.
#[derive(Debug, Clone)]
pub struct NewEvent {
    pub at: Timestamp,
    pub kind: EventType,
    /// Name of the agent.
    pub agent: Option<String>,
    /// Name of the conversation; `None` for `main`.
    pub conversation: Option<String>,
    pub data: Value,
}
