//! Protection of a database against what happens to its files: another process that writes them, files that go or are
//! replaced while they are open, and damage that SQLite would not tell.

mod aside;
mod candidates;
mod catalog;
mod files;
mod holder;
mod incident;
mod missing;
mod newest;
mod raw;
mod recover;
mod start;
mod tally;
mod wal;
mod watch;

pub use aside::{Aside, read_aside};
pub use catalog::{Damaged, look_at_catalog};
pub use incident::{Incident, incidents};
pub use missing::{evidence, refuse as refuse_missing};
pub use newest::Note;
pub use start::look;
pub use tally::Tally;
pub use watch::{Lock, Watch};
