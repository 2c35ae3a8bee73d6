//! Protection of the databases against other processes that write their files, against files that are removed or
//! replaced while they are open, and against damage that SQLite does not report. Recovery and salvage of damaged
//! databases.

mod candidates;
mod catalog_inspection;
mod commit_counter;
mod database_files;
mod file_watch;
mod incident;
mod journal_inspection;
mod journal_salvage;
mod lock_holders;
mod missing_journal;
mod position_file;
mod raw_pages;
mod recover;
mod wal;

pub use catalog_inspection::{CatalogDamage, inspect_catalog};
pub use commit_counter::CommitCounter;
pub use file_watch::{DatabaseLock, FileWatch};
pub use incident::{Incident, list_incidents};
pub use journal_inspection::inspect_journal;
pub use journal_salvage::{SalvagedJournal, salvage_journal};
pub use missing_journal::{evidence_of_journal, refuse_missing_journal as refuse_missing};
pub use position_file::PositionFile;
