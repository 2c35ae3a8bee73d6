//! The database as all tables of the catalog use it: reads by the pool, and writes by the one writer of the node.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::CatalogWrite;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresJournal;
use crate::batch::JobRows;
use crate::connection::Readers;
use crate::errors::read_failed;
use crate::node::Node;
use crate::ownership::{Grant, Grants};
use crate::param::Param;
use crate::statement::{Call, call, read, read_once};
use crate::writer::Writer;

/// The database as one node sees it: the writer, the connections that read, and what this process may write. Cheap to clone.
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

    /// Returns the ownership that a write to an agent needs.
    pub(crate) fn grant(&self, agent: Uuid) -> Result<Option<Grant>> {
        self.grants.of_agent(agent).map(Some)
    }

    /// Returns the ids of the agents that this process owns.
    pub(crate) fn owned_agents(&self) -> Vec<Uuid> {
        self.grants.agents()
    }

    /// Runs a statement that has few variants: its plan is kept.
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

    /// Queues calls, and returns what `decode` makes of the rows of the last one. `confirm` returns the same rows if they were
    /// lost after the commit.
    pub(crate) fn write_and_read<T, D>(
        &self,
        grant: Result<Option<Grant>>,
        calls: Vec<Call>,
        confirm: Call,
        decode: D,
    ) -> CatalogWrite<T>
    where
        T: Send + 'static,
        D: FnOnce(&[Row]) -> Result<T> + Send + Sync + 'static,
    {
        let decode = |rows: &JobRows| decode(rows.last().map_or(&[], Vec::as_slice));
        self.writer.submit(grant, calls, Some(confirm), decode, |_| ())
    }

    /// Queues calls, and runs `then` once they are committed. It gets the rows of the last call, `None` if they were lost.
    pub(crate) fn write_then<P>(&self, grant: Result<Option<Grant>>, calls: Vec<Call>, then: P) -> CatalogWrite<()>
    where
        P: FnOnce(Option<&[Row]>) + Send + Sync + 'static,
    {
        let decode = |rows: &JobRows| {
            then(rows.last().map(Vec::as_slice));
            Ok(())
        };
        self.writer.submit(grant, calls, None, decode, |_| ())
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

/// Returns the only row.
pub(crate) fn only(rows: &[Row]) -> Result<&Row> {
    rows.first().ok_or_else(|| Error::internal("PostgreSQL returned no row"))
}

/// Returns true for a text that a column of type `text` can hold.
pub(crate) fn is_storable(text: &str) -> bool {
    !text.contains('\0')
}

/// Refuses texts that a column of type `text` cannot hold.
///
/// # Errors
/// `invalid_params` if one has a NUL character.
pub(crate) fn refuse_nul<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<()> {
    match texts.into_iter().all(is_storable) {
        true => Ok(()),
        false => Err(Error::invalid("a text contains a NUL character")),
    }
}

/// Reads a text that is stored as bytes.
pub(crate) fn text_of_bytes(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
