//! The state of an export between two of its parts.

use super::coding_tools::ToolProgress;
use super::markdown::SectionWriter;

/// State of an export between two frames or messages: everything that the rest of the text depends on besides the
/// session.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Number of frames written so far.
    pub frames: u8,
    /// Number of messages written since the last frame.
    pub messages: u64,
    /// The open section of Markdown.
    pub(super) sections: SectionWriter,
    /// Bytes of Markdown before its block of data.
    pub(super) text_bytes: u64,
    /// Number of user messages that have a record in the block of data.
    pub(super) recorded_queries: u64,
    /// The state of a file for another program.
    pub(super) tool: ToolProgress,
}
