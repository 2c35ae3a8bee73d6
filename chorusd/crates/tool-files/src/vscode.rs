//! VS Code: `workspace.json` beside the directory of chats has the project.

use std::path::Path;

use serde::Deserialize;

use crate::bounded_read::{MAX_BYTES, read_text};
use crate::conversation_info::ConversationInfo;
use crate::file_url::path_of_file_url;

const CHATS: &str = "chatSessions";

const WORKSPACE: &str = "workspace.json";

#[derive(Deserialize)]
struct Workspace {
    /// The URL of the directory. A workspace of several has none.
    folder: Option<String>,
}

pub(crate) fn is_chat_dir(dir: &Path) -> bool {
    dir.file_name().is_some_and(|name| name == CHATS)
}

pub(crate) fn read_info(chats: &Path) -> ConversationInfo {
    let text = read_text(&chats.with_file_name(WORKSPACE), MAX_BYTES);
    let workspace = text.and_then(|text| serde_json::from_str::<Workspace>(&text).ok());
    ConversationInfo::with_project(workspace.and_then(|workspace| path_of_file_url(&workspace.folder?)))
}
