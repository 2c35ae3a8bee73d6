//! Sessions as a tree shows them.

use chorus_proto::{SessionHeader, Trigger};
use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

/// A session with the fields that a session tree shows. It can be parsed from the header of a row.
#[derive(Debug, Clone, Deserialize)]
pub struct LineageRow {
    pub id: Uuid,
    pub session_id: String,
    pub saved_at: Timestamp,
    pub started_at: Timestamp,
    pub trigger: Trigger,
    pub message_count: u64,
    pub description: Option<String>,
    pub summary: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    pub parent_id: Option<Uuid>,
    /// The conversation of another program that it holds.
    #[serde(default)]
    pub source: Option<LineageSource>,
    /// Reason why the file cannot be read, if it cannot.
    #[serde(skip)]
    pub corrupt: Option<String>,
}

/// The field of a session's source that a tree needs.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct LineageSource {
    pub ended_at: Timestamp,
}

/// The names of a session and of its agent. They can be parsed from the header of a row.
#[derive(Debug, Clone, Deserialize)]
pub struct SessionName {
    pub agent_name: String,
    pub session_id: String,
}

impl SessionName {
    /// Returns the name of a session that was saved after `at`, from its header as JSON, if its conversation contains that
    /// time and was not imported.
    #[must_use]
    pub fn if_contains(header: &str, at: Timestamp) -> Option<String> {
        let header: SessionHeader = serde_json::from_str(header).ok()?;
        (header.started_at <= at && header.trigger != Trigger::Import).then_some(header.session_id)
    }
}
