//! Protection of a database against what happens to its files: another process that writes them, files that go or are
//! replaced while they are open, and damage that SQLite would not tell.

mod aside;
mod candidates;
mod incident;
mod newest;
mod raw;
mod start;
mod wal;
mod watch;

pub use aside::{Aside, read_aside};
pub use incident::{Incident, incidents};
pub use newest::{NAME as NEWEST, Note};
pub use start::look;
pub use watch::{Lock, Watch};
