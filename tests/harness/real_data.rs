//! Real conversations in a directory beside the project; they are not part of it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Need, skip_without};

/// Returns the directory; skips the test and returns `None` if there is none.
#[must_use]
pub fn data_dir() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if path.is_dir() {
        return Some(path);
    }
    skip_without(Need::RealData, "no real conversations beside the project (../shared/data)");
    None
}

/// Lists the files with this extension in a directory, sorted by name.
#[must_use]
pub fn files_with_extension(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a readable folder");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    paths.sort();
    paths
}

/// Lists the files of all conversations below the directory.
#[must_use]
pub fn conversations(root: &Path) -> Vec<PathBuf> {
    [("tau-bench", "json"), ("swe-agent", "json"), ("claude-code", "jsonl")]
        .into_iter()
        .flat_map(|(folder, extension)| files_with_extension(&root.join(folder), extension))
        .collect()
}
