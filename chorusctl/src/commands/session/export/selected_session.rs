//! The fields of a session that an export needs.

use chorus_proto::ConversationRef;
use serde::Deserialize;
use uuid::Uuid;

use crate::ui::units::pluralize;

/// A session of the selection. Other fields are not parsed: for a thousand sessions that would take longer than writing
/// the files.
#[derive(Debug, Deserialize)]
pub struct ExportSession {
    pub id: Uuid,
    pub session_id: String,
    pub agent_id: Uuid,
    pub agent_name: String,
    pub conversation: Option<ConversationRef>,
    pub file_path: String,
    pub available: bool,
    pub corrupt: Option<String>,
    pub message_count: Option<u64>,
}

impl ExportSession {
    /// Returns true for the live conversation with something that no session holds. It has no file.
    pub(crate) fn is_live(&self) -> bool {
        self.file_path.is_empty() && self.available
    }

    /// Returns what an export of this session alone is called, for example `2026-07-05_migration (21 messages)`.
    pub(crate) fn describe(&self) -> String {
        let name = match (self.is_live(), &self.conversation) {
            (false, _) => self.session_id.clone(),
            (true, None) => "the live conversation".to_owned(),
            (true, Some(conversation)) => format!("the live conversation {}", conversation.name),
        };
        match self.message_count {
            Some(count) => format!("{name} ({})", pluralize(count, "message")),
            None => name,
        }
    }
}
