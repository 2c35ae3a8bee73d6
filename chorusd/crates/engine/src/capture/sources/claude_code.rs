//! Claude Code: `projects/<project>/<id>.jsonl`, with the transcripts of subagents below.

use std::path::Path;

use chorus_proto::methods::import::ImportFormat;

use super::{FileKind, Program, Root, UserPlaces, has_extension, lines_if, name_of};

pub(in super::super) const PROGRAM: Program =
    Program { name: "claude-code", format: ImportFormat::ClaudeCode, roots, kind, is_subagent, deletes_after_days };

fn roots(places: &UserPlaces) -> Vec<Root> {
    let usual = || vec![places.home.join(".claude"), places.home.join(".config/claude")];
    let dirs = places.moved("CLAUDE_CONFIG_DIR").map_or_else(usual, |dir| vec![dir.to_owned()]);
    dirs.into_iter().map(|dir| Root::new(dir.join("projects"), 8)).collect()
}

fn kind(path: &Path) -> Option<FileKind> {
    let is_output = path.components().any(|part| part.as_os_str() == "tool-results");
    lines_if(has_extension(path, "jsonl") && !is_output)
}

fn is_subagent(path: &Path) -> bool {
    name_of(path).as_encoded_bytes().starts_with(b"agent-")
}

fn deletes_after_days(root: &Path) -> Option<u64> {
    /// Used if its settings do not say otherwise.
    const USUAL_DAYS: u64 = 30;
    let settings = std::fs::read(root.with_file_name("settings.json")).unwrap_or_default();
    let settings: serde_json::Value = serde_json::from_slice(&settings).unwrap_or_default();
    Some(settings["cleanupPeriodDays"].as_u64().unwrap_or(USUAL_DAYS))
}
