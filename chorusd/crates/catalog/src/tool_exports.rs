//! Rows of exports: the conversations of other programs as which sessions were written, so that capture recognizes them.

use std::fmt::Debug;

use jiff::Timestamp;
use uuid::Uuid;

use crate::{CatalogRead, CatalogWrite};

/// A session that was written as a conversation of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolExport {
    /// Hash of the program and the id of the conversation there.
    pub conversation: String,
    /// The session; `None` for a live conversation that no session holds.
    pub session: Option<Uuid>,
    /// Hash of the program and the id of the conversation that the session holds.
    pub origin: String,
    /// The time of the last message that was written. Later ones are new.
    pub last_message_at: Timestamp,
}

/// The table of exports.
pub trait ToolExportTable: Debug + Send + Sync {
    /// Records an export. The first one of a conversation counts, because its program may have continued it since.
    fn record(&self, export: ToolExport) -> CatalogWrite<()>;

    /// Finds the export as a conversation, by the hash of its program and id.
    fn find(&self, conversation: String) -> CatalogRead<'_, Option<ToolExport>>;

    /// Makes the exports of a session those of another one, which replaces it.
    fn move_to(&self, from: Uuid, to: Uuid) -> CatalogWrite<()>;
}
