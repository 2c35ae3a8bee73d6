//! GitHub Copilot CLI: `session-state/<id>/events.jsonl`; first versions: `session-state/<id>.jsonl`.

use std::path::Path;

use chorus_proto::methods::import::ImportFormat;

use super::{FileKind, Program, Root, UserPlaces, dir_name_of, has_extension, lines_if, name_of};

pub(in super::super) const PROGRAM: Program = Program {
    name: "copilot",
    format: ImportFormat::Copilot,
    roots: |places: &UserPlaces| vec![Root::new(places.dir("COPILOT_HOME", ".copilot").join("session-state"), 1)],
    kind,
    is_subagent: |_| false,
    deletes_after_days: |_| None,
};

fn kind(path: &Path) -> Option<FileKind> {
    let is_first_version = has_extension(path, "jsonl") && dir_name_of(path) == "session-state";
    lines_if(is_first_version || name_of(path) == "events.jsonl")
}
