//! The Markdown form of a conversation, shared by export and import. Both use the same rules, so an exported file can
//! be imported again; text that contains a line of the format itself is put into a fenced block.
//!
//! A file consists of a header, sections (`## Query 3 (14:58:03)`) that contain the messages, and a block with the
//! summary. HTML comments hold the data that the visible lines leave out: one for the session and one before each
//! message. Files without comments, written by people or by other programs, are read as far as possible.

mod char_escape;
mod comment;
mod fenced_block;
pub(crate) mod message_heading;
mod needs_fence;
mod section_heading;
mod speaker_label;
mod summary;
mod timing_line;

pub(crate) use comment::{MESSAGE_COMMENT, SESSION_COMMENT, parse_comment, render_comment};
pub(crate) use fenced_block::{BlockKind, FencedBlock};
pub(crate) use needs_fence::is_safe_text;
pub use needs_fence::one_line;
pub(crate) use section_heading::Section;
pub(crate) use speaker_label::{parse_speaker_label, speaker_label};
pub(crate) use summary::{END as SUMMARY_END, START as SUMMARY_START, SummaryBlock};
pub(crate) use timing_line::Timing;
