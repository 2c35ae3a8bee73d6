//! Full-text search: keeps an index of what was said up to date in the background, and answers queries from it.
//!
//! The index (`index/` in the home, crate `chorus-search`) is disposable. It follows the catalog and the live contexts: each
//! change of a session's row or of a live context is noted in memory, and a thread of low priority reads what changed and commits it.
//! No write waits for it. A start compares the index with the catalog, so what a crash left out is added then, and an index that
//! is missing, damaged or of another version is rebuilt.

mod backlog;
mod failure;
mod indexer;
mod live_changes;
mod message_text;
mod service;
mod source;
mod timer;

pub use indexer::run;
pub use live_changes::LiveChanges;
pub(crate) use live_changes::Novelty;
pub use service::{IndexProgress, SearchService, SearchSettings};
pub(crate) use source::{is_of_earlier_context, live_id as live_source_id};
pub(crate) use timer::Timer;
