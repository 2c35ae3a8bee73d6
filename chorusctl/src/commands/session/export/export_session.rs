//! What an export needs to know of a session.

use serde::Deserialize;
use uuid::Uuid;

/// One session of the selection. The rest of what the daemon says of it is not read: of a thousand that would take
/// longer than writing the files.
#[derive(Debug, Deserialize)]
pub struct ExportSession {
    pub id: Uuid,
    pub session_id: String,
    pub agent_id: Uuid,
    pub agent_name: String,
    pub file_path: String,
    pub available: bool,
    pub corrupt: Option<String>,
}
