//! The fields of a session that an export needs.

use serde::Deserialize;
use uuid::Uuid;

/// A session of the selection. Other fields are not parsed: for a thousand sessions that would take longer than writing
/// the files.
#[derive(Debug, Deserialize)]
pub(super) struct ExportSession {
    pub id: Uuid,
    pub session_id: String,
    pub agent_id: Uuid,
    pub agent_name: String,
    pub file_path: String,
    pub available: bool,
    pub corrupt: Option<String>,
}

impl ExportSession {
    /// Whether this is the live conversation, with something that no session holds. It has no file.
    pub(super) fn is_live(&self) -> bool {
        self.file_path.is_empty() && self.available
    }
}
