//! OpenClaw: titles of sessions stand in `sessions.json` beside them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::bounded_read::{MAX_BYTES, read_text};
use crate::conversation_info::ConversationInfo;

const SESSIONS: &str = "sessions";

const SESSION_LIST: &str = "sessions.json";

/// An entry of the list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    session_id: String,
    /// The name that the user gave it.
    label: Option<String>,
    display_name: Option<String>,
}

/// Returns the id of the session in a file: `<id>.jsonl`, of a topic `<id>-topic-<number>.jsonl`.
pub(crate) fn session_id<'a>(dir: &Path, name: &'a str) -> Option<&'a str> {
    let stem = name.strip_suffix(".jsonl").filter(|_| dir.file_name().is_some_and(|name| name == SESSIONS))?;
    Some(stem.split_once("-topic-").map_or(stem, |(id, _)| id))
}

pub(crate) fn read_info(dir: &Path, id: &str) -> ConversationInfo {
    let text = read_text(&dir.join(SESSION_LIST), MAX_BYTES).unwrap_or_default();
    let entries: BTreeMap<String, &RawValue> = serde_json::from_str(&text).unwrap_or_default();
    let mut entries = entries.into_values().filter_map(|entry| serde_json::from_str::<Entry>(entry.get()).ok());
    let entry = entries.find(|entry| entry.session_id == id);
    ConversationInfo::with_title(entry.and_then(|Entry { label, display_name, .. }| label.or(display_name)))
}
