//! Reads what coding tools keep in files: the project and the title of a conversation that only the path of its transcript or another
//! file of the tool tells, transcripts that the tool compressed, and conversations that it keeps in many files.
//!
//! Of other files than a transcript, only regular ones in the directory of the tool are read, and at most 1 MiB of each. What is missing,
//! broken or too long there is left out, and makes no import fail. Elsewhere, only the names of directories are looked at, to find the project
//! that Cursor names by its path.
//!
//! Absent on purpose: the formats of transcripts, which crate `chorus-session` imports, and any write.

#![warn(unreachable_pub)]

mod bounded_read;
mod codex;
mod conversation_info;
mod copilot;
mod cursor;
mod file_url;
mod gemini;
mod object_fields;
mod openclaw;
mod opencode_storage;
mod vscode;
mod zstd;

pub use conversation_info::{ConversationInfo, read_info};
pub use cursor::CursorTranscript;
pub use file_url::path_of_file_url;
pub use opencode_storage::{
    is_opencode_part, is_opencode_session, message_files, session_of_message, write_opencode_session,
};
pub use zstd::{MAX_TRANSCRIPT_BYTES, ZstdReader, is_compressed};
