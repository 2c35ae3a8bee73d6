//! Codex: `sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`. A rollout that was not written for a while is compressed, to
//! the same name with `.zst`, and decompressed to be written again.

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
    let is_rollout =
        |path: &Path| has_extension(path, "jsonl") && name_of(path).as_encoded_bytes().starts_with(b"rollout-");
    if has_extension(path, "zst") {
        let plain = path.with_extension("");
        return (is_rollout(&plain) && !plain.exists()).then_some(FileKind::CompressedLines);
    }
    lines_if(is_rollout(path))
}
