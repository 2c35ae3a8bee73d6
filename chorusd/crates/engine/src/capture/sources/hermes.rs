//! Hermes: `state.db`, and one more for each profile.

use std::path::Path;

use chorus_proto::methods::import::ImportFormat;

use super::{FileKind, Program, Root, UserPlaces, name_of};

pub(in super::super) const PROGRAM: Program = Program {
    name: "hermes",
    format: ImportFormat::Hermes,
    roots: |places: &UserPlaces| {
        let dir = places.dir("HERMES_HOME", ".hermes");
        vec![Root::new(dir.clone(), 0), Root::new(dir.join("profiles"), 1)]
    },
    kind: |path: &Path| (name_of(path) == "state.db").then_some(FileKind::Database),
    is_subagent: |_| false,
    deletes_after_days: |_| None,
};
