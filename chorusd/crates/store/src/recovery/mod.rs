//! Protection of the databases against other processes that write their files, against files that are removed or
//! replaced while they are open, and against damage that SQLite does not report. Recovery and salvage of damaged
//! databases.

mod candidates;
mod catalog_recovery;
mod commit_counter;
mod file_watch;
mod header_and_wal;
mod incident;
mod journal_recovery;
mod journal_salvage;
mod lock_holders;
mod missing_journal_check;
mod position_file;
mod raw_pages;
mod recover;
mod wal;

pub(crate) use catalog_recovery::{CatalogDamage, inspect_catalog};
pub(crate) use commit_counter::CommitCounter;
pub(crate) use file_watch::{DatabaseLock, FileWatch};
pub use incident::{Incident, list_incidents};
pub(crate) use journal_recovery::inspect_journal;
pub use journal_salvage::{SalvagedJournal, salvage_journal};
pub(crate) use missing_journal_check::{evidence_of_journal, refuse_missing_journal as refuse_missing};
pub(crate) use position_file::PositionFile;
