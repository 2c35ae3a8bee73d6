//! The Markdown form of a conversation, shared by export and import. Both use the same rules, so an exported file can
//! be imported again; text that contains a line of the format itself is put into a fenced block.
//!
//! A file consists of a header, sections (`## Query 3 (14:58:03)`) that contain the messages, a block with the summary,
//! and a block of data (`data_block`) for what the visible lines leave out. Earlier releases wrote that data as comments, one
//! for the session and one before each message (`comment`); such files are still read. Files without data, written by people
//! or by other programs, are read as far as possible.

mod char_escape;
mod comment;
mod data_block;
mod fenced_block;
pub(crate) mod message_heading;
mod needs_fence;
mod section_heading;
mod speaker_label;
mod summary;
mod timing_line;

pub(crate) use comment::{MESSAGE_COMMENT, SESSION_COMMENT, parse_comment};
pub(crate) use data_block::{DATA_END, DATA_START, DataHeader, MessageRecord, parse_data_line, render_data_line};
pub(crate) use fenced_block::{BlockKind, FencedBlock};
pub(crate) use needs_fence::is_safe_text;
pub use needs_fence::one_line;
pub(crate) use section_heading::{HeadingTime, Section};
pub(crate) use speaker_label::{call_label, is_call_label, message_label, parse_call_label, parse_speaker_label};
pub(crate) use summary::{END as SUMMARY_END, START as SUMMARY_START, SummaryBlock};
pub(crate) use timing_line::Timing;
