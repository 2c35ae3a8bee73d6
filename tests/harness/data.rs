//! Real conversations that lie beside the project and are no part of it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Need, skip_without};

/// The folder, or `None` with a message where there is none.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if path.is_dir() {
        return Some(path);
    }
    skip_without(Need::RealData, "no real conversations beside the project (../shared/data)");
    None
}

/// The files of `extension` in one folder of the data, by name.
///
/// # Panics
/// Where the folder is there and cannot be read.
#[must_use]
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a readable folder");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    paths.sort();
    paths
}
