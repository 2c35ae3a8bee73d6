//! Gemini CLI: `tmp/<project>/chats/session-*.jsonl`. Older versions wrote one JSON document, and put a chat that is resumed
//! by a newer one into a file of lines beside it.

use std::path::Path;

use chorus_proto::methods::import::ImportFormat;

use super::{FileKind, Program, Root, UserPlaces, dir_name_of, has_extension};

pub(in super::super) const PROGRAM: Program = Program {
    name: "gemini",
    format: ImportFormat::Gemini,
    roots: |places: &UserPlaces| {
        let dir = places.moved("GEMINI_CLI_HOME").unwrap_or(&places.home);
        vec![Root::new(dir.join(".gemini/tmp"), 3)]
    },
    kind,
    is_subagent,
    deletes_after_days,
};

fn kind(path: &Path) -> Option<FileKind> {
    if !path.components().any(|part| part.as_os_str() == "chats") {
        return None;
    }
    if has_extension(path, "jsonl") {
        return Some(FileKind::Lines);
    }
    (has_extension(path, "json") && !path.with_extension("jsonl").exists()).then_some(FileKind::Document)
}

/// Chats of subagents are in a directory that has the id of the chat.
fn is_subagent(path: &Path) -> bool {
    dir_name_of(path) != "chats"
}

/// Chats are deleted when they are older than `general.sessionRetention.maxAge`, such as `30d`.
fn deletes_after_days(root: &Path) -> Option<u64> {
    /// Used if its settings do not say otherwise.
    const USUAL_DAYS: u64 = 30;
    let settings = std::fs::read(root.with_file_name("settings.json")).unwrap_or_default();
    let settings: serde_json::Value = serde_json::from_slice(&settings).unwrap_or_default();
    let retention = &settings["general"]["sessionRetention"];
    if retention["enabled"] == false {
        return None;
    }
    let age = retention["maxAge"].as_str().and_then(|text| text.parse::<humantime::Duration>().ok());
    Some(age.map_or(USUAL_DAYS, |age| age.as_secs() / (24 * 60 * 60)))
}
