//! goose: `sessions.db`; first versions: `<time>.jsonl`.

use std::path::Path;

use chorus_proto::methods::import::ImportFormat;

use super::{FileKind, Program, Root, UserPlaces, has_extension, lines_if, name_of};

pub(in super::super) const PROGRAM: Program = Program {
    name: "goose",
    format: ImportFormat::Goose,
    roots,
    kind,
    is_subagent: |_| false,
    deletes_after_days: |_| None,
};

fn roots(places: &UserPlaces) -> Vec<Root> {
    let dirs = match places.moved("GOOSE_PATH_ROOT") {
        Some(root) => vec![root.join("data")],
        None => vec![
            places.dir("XDG_DATA_HOME", ".local/share").join("goose"),
            places.dir("XDG_CONFIG_HOME", ".config").join("goose"),
        ],
    };
    dirs.into_iter().map(|dir| Root::new(dir.join("sessions"), 0)).collect()
}

fn kind(path: &Path) -> Option<FileKind> {
    if name_of(path) == "sessions.db" { Some(FileKind::Database) } else { lines_if(has_extension(path, "jsonl")) }
}
