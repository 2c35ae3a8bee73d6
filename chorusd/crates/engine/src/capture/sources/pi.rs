//! pi: `sessions/--<project>--/<time>_<id>.jsonl`.

use std::path::Path;

use chorus_proto::methods::import::ImportFormat;

use super::{FileKind, Program, Root, UserPlaces, has_extension, lines_if};

pub(in super::super) const PROGRAM: Program =
    Program { name: "pi", format: ImportFormat::Pi, roots, kind, is_subagent: |_| false, deletes_after_days: |_| None };

fn roots(places: &UserPlaces) -> Vec<Root> {
    let usual = || places.dir("PI_CODING_AGENT_DIR", ".pi/agent").join("sessions");
    vec![Root::new(places.moved("PI_CODING_AGENT_SESSION_DIR").map_or_else(usual, Path::to_owned), 1)]
}

fn kind(path: &Path) -> Option<FileKind> {
    lines_if(has_extension(path, "jsonl"))
}
