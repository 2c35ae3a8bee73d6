//! OpenClaw: `agents/<agent>/agent/openclaw-agent.sqlite`, before that `agents/<agent>/sessions/<id>.jsonl`. A machine may have both.

use std::path::Path;

use chorus_proto::methods::import::ImportFormat;

use super::{FileKind, Program, Root, UserPlaces, dir_name_of, has_extension, lines_if, name_of};

pub(in super::super) const PROGRAM: Program = Program {
    name: "openclaw",
    format: ImportFormat::Pi,
    roots,
    kind,
    is_subagent: |_| false,
    deletes_after_days: |_| None,
};

/// The program had other names before.
fn roots(places: &UserPlaces) -> Vec<Root> {
    let usual = || [".openclaw", ".clawdbot", ".moltbot"].map(|name| places.home.join(name)).to_vec();
    let dirs = places.moved("OPENCLAW_STATE_DIR").map_or_else(usual, |dir| vec![dir.to_owned()]);
    dirs.into_iter().map(|dir| Root::new(dir.join("agents"), 2)).collect()
}

/// Beside its sessions it keeps the whole requests to the model.
fn kind(path: &Path) -> Option<FileKind> {
    if name_of(path) == "openclaw-agent.sqlite" {
        return Some(FileKind::Database);
    }
    let is_request = path.file_stem().map(Path::new).is_some_and(|stem| has_extension(stem, "trajectory"));
    lines_if(has_extension(path, "jsonl") && dir_name_of(path) == "sessions" && !is_request)
}
