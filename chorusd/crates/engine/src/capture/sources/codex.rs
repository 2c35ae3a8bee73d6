//! Codex: `sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`.

use std::path::Path;

use chorus_proto::methods::import::ImportFormat;

use super::{FileKind, Program, Root, UserPlaces, has_extension, lines_if, name_of};

pub(in super::super) const PROGRAM: Program = Program {
    name: "codex",
    format: ImportFormat::Codex,
    roots,
    kind,
    is_subagent: |_| false,
    deletes_after_days: |_| None,
};

fn roots(places: &UserPlaces) -> Vec<Root> {
    let dir = places.dir("CODEX_HOME", ".codex");
    vec![Root::new(dir.join("sessions"), 4), Root::new(dir.join("archived_sessions"), 4)]
}

fn kind(path: &Path) -> Option<FileKind> {
    lines_if(has_extension(path, "jsonl") && name_of(path).as_encoded_bytes().starts_with(b"rollout-"))
}
