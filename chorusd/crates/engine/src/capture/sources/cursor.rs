//! Cursor: transcripts of its agent, which are those of the command line and of the editor, below `projects/<project>/agent-transcripts`.

use std::path::Path;

use chorus_proto::methods::import::ImportFormat;
use chorus_tool_files::CursorTranscript;

use super::{Program, Root, UserPlaces, lines_if};

pub(in super::super) const PROGRAM: Program = Program {
    name: "cursor",
    format: ImportFormat::Cursor,
    roots,
    kind: |path| lines_if(CursorTranscript::from_path(path).is_some()),
    is_subagent: |path| CursorTranscript::from_path(path).is_some_and(|transcript| transcript.parent.is_some()),
    deletes_after_days: |_| None,
};

/// Versions differ in what moves the directory of data, and in the usual one on Linux.
fn roots(places: &UserPlaces) -> Vec<Root> {
    let data = places.dir("CURSOR_DATA_DIR", ".cursor");
    let usual_config = || places.dir("XDG_CONFIG_HOME", ".config").join("cursor");
    let config = places.moved("CURSOR_CONFIG_DIR").map_or_else(usual_config, Path::to_owned);
    let mut dirs = vec![data, config];
    dirs.dedup();
    dirs.into_iter().map(|dir| Root::new(dir.join("projects"), 4)).collect()
}
