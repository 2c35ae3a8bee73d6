//! The tables of the catalog: the same in SQLite and in PostgreSQL.

mod agents;
mod approvals;
mod audit;
mod both;
mod capture;
mod discord;
mod faults;
mod fences;
mod file_writes;
mod imported_usage;
mod memories;
mod rows;
mod settings;
mod tasks;
mod tool_exports;
mod usage;

use std::sync::Arc;

use chorus_base::Durability;
use chorus_store::Store;

use super::{Result, at};

/// Opens the databases of a home.
fn open_sqlite(home: &tempfile::TempDir) -> Result<Store> {
    std::fs::create_dir(home.path().join("db"))?;
    let redactor = Arc::new(chorus_redact::Redactor::new(|| [0; 32]));
    let on_fatal: chorus_store::OnFatal = Arc::new(|_| ());
    Ok(Store::open(home.path(), Durability::Always, &on_fatal, at(0), redactor)?)
}
