//! Reads the title and project of a conversation from the path of its transcript and the files beside it.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::cursor::{self, CursorTranscript};
use crate::{codex, copilot, gemini, openclaw, vscode};

/// The limit on the characters of a title. Some tools take the first prompt.
const MAX_TITLE_CHARS: usize = 200;

/// aider appends every run in a directory to this file there.
const AIDER_HISTORY: &str = ".aider.chat.history.md";

/// Title and project of a conversation, from elsewhere than its transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationInfo {
    /// The directory that it was held in.
    pub project: Option<String>,
    pub title: Option<String>,
}

impl ConversationInfo {
    pub(crate) fn with_project(project: Option<String>) -> Self {
        Self { project: project.filter(|path| is_path(path)), title: None }
    }

    pub(crate) fn with_title(title: Option<String>) -> Self {
        Self { project: None, title: title.as_deref().and_then(first_line) }
    }
}

/// Reads what the path of a transcript, and the files beside it, tell of its conversation. The tool is known by where the transcript
/// lies. Blocks.
#[must_use]
pub fn read_info(transcript: &Path) -> ConversationInfo {
    // The directories of a relative path have no names.
    let Some(dir) = transcript
        .parent()
        .and_then(|dir| fs::canonicalize(if dir == Path::new("") { Path::new(".") } else { dir }).ok())
    else {
        return ConversationInfo::default();
    };
    let (Some(name), dir) = (transcript.file_name().and_then(OsStr::to_str), dir.as_path()) else {
        return ConversationInfo::default();
    };
    if name == AIDER_HISTORY {
        return ConversationInfo::with_project(dir.to_str().map(str::to_owned));
    }
    if name == copilot::TRANSCRIPT {
        return copilot::read_info(dir);
    }
    if let Some(id) = codex::thread_id(name) {
        return codex::read_info(dir, id);
    }
    if vscode::is_chat_dir(dir) {
        return vscode::read_info(dir);
    }
    if let Some(chats) = gemini::chats_dir(dir) {
        return gemini::read_info(chats);
    }
    if let Some(transcript) = CursorTranscript::from_path(&dir.join(name)) {
        return cursor::read_info(transcript);
    }
    match openclaw::session_id(dir, name) {
        Some(id) => openclaw::read_info(dir, id),
        None => ConversationInfo::default(),
    }
}

fn is_path(text: &str) -> bool {
    text.starts_with('/') && !text.contains(['\n', '\0'])
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(MAX_TITLE_CHARS).collect())
}
