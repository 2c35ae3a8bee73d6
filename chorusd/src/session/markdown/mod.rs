//! A conversation in Markdown: its parts as lines. What is exported is read back by the same rules, so a text that holds such
//! a line itself goes into a fenced block.
//!
//! A file is a head, sections (`## Query 3 (14:58:03)`) with the messages in them, and a block with the summary. What the
//! lines for people leave out stands in comments: one for the session, one before each message. Files without comments,
//! written by people or by other programs, are read as far as they go.

mod block;
mod comment;
mod escape;
pub mod headed;
mod plain;
mod section;
mod speaker;
mod summary;
mod times;

pub use block::{Block, Holds};
pub use comment::{MESSAGE, SESSION, comment, commented};
pub use plain::{is_plain, one_line};
pub use section::Section;
pub use speaker::{label, labelled};
pub use summary::{END as SUMMARY_END, START as SUMMARY_START, Summary};
pub use times::Times;
