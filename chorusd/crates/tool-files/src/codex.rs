//! Codex: titles stand in `session_index.jsonl`, beside the directories of its rollouts.

use std::ffi::OsStr;
use std::path::Path;

use serde::Deserialize;

use crate::bounded_read::read_end;
use crate::conversation_info::ConversationInfo;

const ROLLOUT_START: &str = "rollout-";

/// The length of the time in the name of a rollout, with the dash behind it: `2026-11-26T21-00-11-`.
const TIME_LENGTH: usize = 20;

const ID_LENGTH: usize = 36;

/// The directories of rollouts.
const ROLLOUT_DIRS: [&str; 2] = ["sessions", "archived_sessions"];

const SESSION_INDEX: &str = "session_index.jsonl";

/// How deep a rollout is in its directory: year, month, day.
const MAX_DEPTH: usize = 3;

/// A line of the index. The last one of a conversation counts.
#[derive(Deserialize)]
struct IndexLine {
    id: String,
    thread_name: Option<String>,
}

/// Returns the id of a conversation from the name of its rollout: `rollout-<time>-<id>.jsonl`. Another id can follow.
pub(crate) fn thread_id(name: &str) -> Option<&str> {
    let id = name.strip_prefix(ROLLOUT_START)?.get(TIME_LENGTH..)?.get(..ID_LENGTH)?;
    id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-').then_some(id)
}

/// Reads the title of a conversation whose rollout is in `dir`.
pub(crate) fn read_info(dir: &Path, id: &str) -> ConversationInfo {
    let is_rollouts =
        |dir: &&Path| dir.file_name().and_then(OsStr::to_str).is_some_and(|name| ROLLOUT_DIRS.contains(&name));
    let index = dir.ancestors().take(MAX_DEPTH + 1).find(is_rollouts).map(|dir| dir.with_file_name(SESSION_INDEX));
    let lines = index.and_then(|index| read_end(&index)).unwrap_or_default();
    let named = lines.rsplit(|byte| *byte == b'\n').filter_map(|line| {
        let line = std::str::from_utf8(line).ok().filter(|line| line.contains(id))?;
        serde_json::from_str::<IndexLine>(line).ok().filter(|line| line.id == id)?.thread_name
    });
    ConversationInfo::with_title(named.into_iter().next())
}
