//! opencode: `opencode.db`, one database for all projects.

use std::path::Path;

use chorus_proto::methods::import::ImportFormat;

use super::{FileKind, Program, Root, UserPlaces, has_extension, name_of};

pub(in super::super) const PROGRAM: Program = Program {
    name: "opencode",
    format: ImportFormat::Opencode,
    roots,
    kind,
    is_subagent: |_| false,
    deletes_after_days: |_| None,
};

fn roots(places: &UserPlaces) -> Vec<Root> {
    let dir = match places.moved("OPENCODE_DB").and_then(Path::parent) {
        Some(dir) => dir.to_owned(),
        None => places.dir("XDG_DATA_HOME", ".local/share").join("opencode"),
    };
    vec![Root::new(dir, 0)]
}

/// Versions that are tried before their release have a database of their own: `opencode-<channel>.db`.
fn kind(path: &Path) -> Option<FileKind> {
    let is_it = has_extension(path, "db") && name_of(path).as_encoded_bytes().starts_with(b"opencode");
    is_it.then_some(FileKind::Database)
}
