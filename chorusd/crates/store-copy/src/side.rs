//! One of the two databases of a copy.

use chorus_base::error::Result;

use crate::postgres::PostgresSide;
use crate::sqlite::SqliteSide;
use crate::stream::RowStream;
use crate::table::{Form, Table};
use crate::value::Row;

/// A database.
#[derive(Debug)]
pub(crate) enum Side {
    Sqlite(Box<SqliteSide>),
    Postgres(Box<PostgresSide>),
}

impl Side {
    /// Counts the rows of a table.
    pub(crate) async fn count(&self, table: &Table) -> Result<u64> {
        match self {
            Self::Sqlite(side) => side.count(table),
            Self::Postgres(side) => side.count(table).await,
        }
    }

    /// Reads the rows of a table in the order of their key.
    pub(crate) async fn stream(&self, table: &'static Table) -> Result<RowStream> {
        match self {
            Self::Sqlite(side) => side.stream(table, false),
            Self::Postgres(side) => side.stream(table).await,
        }
    }

    /// Reads the rows that earlier attempts have copied.
    pub(crate) async fn stream_copied(&self, table: &'static Table) -> Result<RowStream> {
        match self {
            Self::Sqlite(side) => side.stream(table, true),
            Self::Postgres(side) => side.stream(table).await,
        }
    }

    /// Deletes all rows of a table.
    pub(crate) async fn clear(&self, table: &Table) -> Result<()> {
        match self {
            Self::Sqlite(side) => side.clear(table),
            Self::Postgres(side) => side.clear(table).await,
        }
    }

    /// Inserts rows that follow those that are there.
    pub(crate) async fn insert(&self, table: &Table, rows: &[Row]) -> Result<()> {
        match self {
            Self::Sqlite(side) => side.insert(table, rows),
            Self::Postgres(side) => side.insert(table, rows).await,
        }
    }

    /// Prepares a table of this target, which has no rows, for those of the source, which are `total`.
    pub(crate) fn begin(&self, table: &Table, total: u64) -> Result<()> {
        match self {
            Self::Sqlite(side) if table.form == Form::Records => side.begin_records(total),
            _ => Ok(()),
        }
    }

    /// Returns whether rows may be added behind those that an earlier attempt has copied.
    pub(crate) fn can_continue(&self, table: &Table, total: u64) -> Result<bool> {
        match self {
            Self::Sqlite(side) if table.form == Form::Records => side.can_continue_records(total),
            _ => Ok(true),
        }
    }
}
