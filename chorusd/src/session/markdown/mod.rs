//! A conversation in Markdown: its parts as lines. What is exported is read back by the same rules, so a text that holds such
//! a line itself goes into a fenced block.
//!
//! A file is a head, sections (`## Query 3 (14:58:03)`) with the messages in them, and a block with the summary. What the
//! lines for people leave out stands in comments: one for the session, one before each message. Files without comments,
//! written by people or by other programs, are read as far as they go.

mod comment;
mod escape;
mod fenced_block;
pub mod heading_form;
mod safe_text;
mod section;
mod speaker;
mod summary;
mod timing_line;

pub use comment::{MESSAGE_COMMENT, SESSION_COMMENT, parse_comment, render_comment};
pub use fenced_block::{BlockKind, FencedBlock};
pub use safe_text::{is_safe_text, one_line};
pub use section::Section;
pub use speaker::{parse_speaker_label, speaker_label};
pub use summary::{END as SUMMARY_END, START as SUMMARY_START, SummaryBlock};
pub use timing_line::Timing;
