//! opencode: `opencode.db`, one database for all projects; before version 1.2 files below `storage/`, and before 0.6 below
//! `project/<project>/storage/`.

use std::path::Path;

use chorus_proto::methods::import::ImportFormat;
use chorus_tool_files::is_opencode_session;

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
    let storage = dir.join("storage");
    // The last one is looked at for changes only.
    let before = [(storage.join("session"), 1), (dir.join("project"), 4), (storage.join("message"), 1)];
    let before = before.into_iter().map(|(dir, depth)| Root::new(dir, depth));
    std::iter::once(Root::new(dir, 0)).chain(before).collect()
}

/// Versions that are tried before their release have a database of their own: `opencode-<channel>.db`.
fn kind(path: &Path) -> Option<FileKind> {
    let is_it = has_extension(path, "db") && name_of(path).as_encoded_bytes().starts_with(b"opencode");
    if is_opencode_session(path) { Some(FileKind::MessageFiles) } else { is_it.then_some(FileKind::Database) }
}
