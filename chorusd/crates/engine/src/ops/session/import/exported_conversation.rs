//! Recognizes conversations of other programs that an export wrote.

use chorus_base::error::{Error, Result};
use chorus_catalog::SessionRow;
use chorus_proto::methods::import::ImportOutcome;
use uuid::Uuid;

use super::importer::{SavedConversation, SessionImporter};
use crate::capture::conversation_hash;
use crate::ops::import_sink::ImportedSession;

/// The relation of a conversation that no session holds yet to the exports.
#[derive(Debug)]
pub(super) enum ExportedConversation {
    /// No export wrote it.
    Unknown,
    /// It has no more than what the export wrote, which this session has.
    HeldBy(Box<SessionRow>),
    /// Capture leaves it out: what it continues was deleted here, or is still live.
    LeftOut,
    /// It continues this session.
    Continues(Uuid),
}

impl SessionImporter {
    /// Looks a conversation up among the exports. Only capture leaves out what it finds; `is_revision` is true if another session
    /// holds an earlier state of the conversation.
    pub(super) async fn find_export(
        &self,
        program: &str,
        ids: &[String],
        imported: &ImportedSession,
        is_revision: bool,
        is_capture: bool,
    ) -> Result<ExportedConversation> {
        let [id] = ids else { return Ok(ExportedConversation::Unknown) };
        let table = &self.store.catalog.tool_exports;
        let Some(export) = table.find(conversation_hash(program, id)).await? else {
            return Ok(ExportedConversation::Unknown);
        };
        if is_capture && !is_revision && self.deleted.contains_hash(&export.origin) {
            return Ok(ExportedConversation::LeftOut);
        }
        let is_unchanged = is_capture && imported.last_at <= export.last_message_at;
        let holder = match export.session {
            Some(session) => self.store.catalog.sessions.get(session).await?,
            None if is_unchanged => return Ok(ExportedConversation::LeftOut),
            None => None,
        };
        Ok(match holder {
            Some(row) if is_unchanged => ExportedConversation::HeldBy(Box::new(row)),
            Some(row) => ExportedConversation::Continues(row.header.id),
            None => ExportedConversation::Unknown,
        })
    }

    /// Describes the session that has all of a conversation.
    pub(super) async fn describe_holder(&self, row: SessionRow) -> Result<SavedConversation> {
        let session = self.sessions.describe_all(vec![row]).await?.pop();
        let session = session.ok_or_else(|| Error::internal("a session without a description"))?;
        Ok(SavedConversation { session, outcome: ImportOutcome::UpToDate, added: 0, secrets: 0 })
    }
}
