//! Gemini CLI: `.project_root` beside the directory of chats has the project.

use std::path::Path;

use crate::bounded_read::{MAX_BYTES, read_text};
use crate::conversation_info::ConversationInfo;

const CHATS: &str = "chats";

const PROJECT_ROOT: &str = ".project_root";

/// Returns the directory of chats that `dir` is, or is in. Chats of subagents are in a directory below it.
pub(crate) fn chats_dir(dir: &Path) -> Option<&Path> {
    dir.ancestors().take(2).find(|dir| dir.file_name().is_some_and(|name| name == CHATS))
}

pub(crate) fn read_info(chats: &Path) -> ConversationInfo {
    let text = read_text(&chats.with_file_name(PROJECT_ROOT), MAX_BYTES);
    ConversationInfo::with_project(text.map(|text| text.trim_end_matches(['\r', '\n']).to_owned()))
}
