//! The error of a failed import, and hints for files that cannot be imported.

use std::io;

/// Reason why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("reading the transcript: {0}")]
    Io(#[from] io::Error),
    /// The file is in none of the known formats.
    #[error("unknown file format")]
    Unrecognised {
        /// Tells the user what to do.
        hint: &'static str,
    },
    /// The format is known, but the file contains no readable message.
    #[error("the file has no readable messages")]
    NoMessages,
    /// The file is broken before its first message.
    #[error("line {line}: {reason}")]
    Malformed { line: u64, reason: String },
}

/// Lists all formats, for a file in none of them.
pub(super) const FORMATS_HINT: &str = "set the format with --from: chorus, claude-code, codex, gemini, opencode, copilot, pi, hermes, goose, chatgpt, claude-ai, librechat, open-webui, amp, aider, cline, gemini-apps, vscode-chat, cursor, openai or markdown";

/// For an archive, which is what ChatGPT sends.
pub(super) const ZIP_HINT: &str =
    "the file is a ZIP archive; unpack it and import the files in it, such as conversations.json";

/// For text files that some Windows programs write.
pub(super) const UTF16_HINT: &str = "the file looks like UTF-16; convert it to UTF-8 first";

impl ImportError {
    /// Tells the user what to do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Io(_) => None,
            Self::Unrecognised { hint } => Some(hint),
            Self::NoMessages => Some("if the detected format is wrong, set it with --from"),
            Self::Malformed { .. } => Some("the file may be truncated: check that the copy is complete"),
        }
    }
}
