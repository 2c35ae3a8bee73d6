//! Reads what coding tools keep beside a transcript: the project and the title of a conversation that only the path of the transcript or
//! another file of the tool tells.
//!
//! Only files in the directories of the tool that the transcript is in are read: regular ones, and at most 1 MiB of each. What is
//! missing, broken or too long is left out; no file of a tool makes an import fail.
//!
//! Absent on purpose: the transcripts themselves, which crate `chorus-session` imports, and any write.

#![warn(unreachable_pub)]

mod bounded_read;
mod codex;
mod conversation_info;
mod copilot;
mod file_url;
mod gemini;
mod openclaw;
mod vscode;

pub use conversation_info::{ConversationInfo, read_info};
pub use file_url::path_of_file_url;
