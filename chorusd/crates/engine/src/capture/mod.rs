//! Capture: keeps the conversations that other coding agents have on this machine.
//!
//! A thread of low priority (`worker`) follows the directories of the programs that are turned on (`source`): by inotify
//! (`watcher`), and by a look at all of them every ten minutes (`file_scan`). A transcript that has changed is read up to its
//! last complete line (`reading`, `complete_lines`) and imported, which adds what is new to its session. Of a database, each
//! conversation that has changed is imported (`databases`). The catalog has a row for each transcript, and for each conversation
//! of a database, as it was read. It is written after the import, so a crash between the two repeats an import, which
//! changes nothing.
//!
//! Nothing is ever deleted or overwritten because its source was. Absent on purpose: the formats, which `session::import`
//! knows, and any change of the files of a program.

mod complete_lines;
mod databases;
mod deleted;
mod file_scan;
mod places;
mod queue;
mod reading;
mod rules;
mod service;
mod settings;
mod source;
mod sources;
mod status;
mod walk;
mod watcher;
mod worker;

pub use deleted::DeletedConversations;
pub(crate) use deleted::{conversation_hash, identity};
pub use places::UserPlaces;
pub use rules::CaptureRules;
pub(crate) use rules::real_path;
pub use service::CaptureService;
pub use source::CaptureSource;
pub use worker::run;
