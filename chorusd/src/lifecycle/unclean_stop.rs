//! A stop that did not come to save everything: the next start does it.

use std::fs;
use std::path::{Path, PathBuf};

fn marker_path(home: &Path) -> PathBuf {
    home.join("run/stopping")
}

/// Notes that a stop has begun.
pub fn set_marker(home: &Path) {
    if let Err(error) = fs::write(marker_path(home), "") {
        tracing::warn!(%error, "if this stop is cut short, the next start saves nothing by itself");
    }
}

/// Whether a stop began that did not save everything.
#[must_use]
pub fn is_marked(home: &Path) -> bool {
    marker_path(home).exists()
}

/// Notes that everything is saved.
pub fn clear_marker(home: &Path) {
    // Nothing there is as good.
    let _ = fs::remove_file(marker_path(home));
}
