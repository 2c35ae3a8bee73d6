//! What the tables of the catalog share.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::CatalogWrite;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresJournal;
use crate::connection::Readers;
use crate::errors::read_failed;
use crate::node::Node;
use crate::ownership::{Grant, Grants};
use crate::param::Param;
use crate::statement::{Call, call, read, read_once};
use crate::writer::Writer;

/// The writer, the connections that read, and what this process may write.
#[derive(Debug, Clone)]
pub(crate) struct CatalogDb {
    pub(crate) writer: Writer,
    pub(crate) grants: Arc<Grants>,
    pub(crate) node: Arc<Node>,
    pub(crate) readers: Readers,
}

impl CatalogDb {
    pub(crate) fn new(journal: &PostgresJournal) -> Self {
        Self {
            writer: journal.writer.clone(),
            grants: journal.grants.clone(),
            node: journal.node.clone(),
            readers: journal.readers.clone(),
        }
    }

    /// Runs a statement that reads, whose plan is kept.
    pub(crate) async fn read(&self, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>> {
        let client = self.readers.get().await?;
        read(&client, self.readers.route(), sql, params).await.map_err(|e| read_failed(&e))
    }

    /// Runs a statement that is planned for these parameters.
    pub(crate) async fn read_once(&self, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>> {
        let client = self.readers.get().await?;
        read_once(&client, sql, params).await.map_err(|e| read_failed(&e))
    }

    /// Queues calls whose rows nobody needs.
    pub(crate) fn write(&self, grant: Result<Option<Grant>>, calls: Vec<Call>) -> CatalogWrite<()> {
        self.writer.submit(grant, calls, None, |_| Ok(()), |_| ())
    }

    /// The call that fails unless this process owns the agent of a session. Without a session it does nothing.
    pub(crate) fn require_session(&self, id: Uuid) -> Call {
        call!("SELECT require_session($1, $2, $3)", id, self.node.id.clone(), self.node.boot)
    }

    /// The name and the boot number of this process.
    pub(crate) fn node(&self) -> (String, i64) {
        (self.node.id.clone(), self.node.boot)
    }
}
