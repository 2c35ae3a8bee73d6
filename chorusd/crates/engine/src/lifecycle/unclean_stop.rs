//! A marker file that tells the next start that the last stop did not save every context.

use std::fs;
use std::path::{Path, PathBuf};

fn marker_path(home: &Path) -> PathBuf {
    home.join("run/stopping")
}

/// Creates the marker when a stop begins.
pub fn set_marker(home: &Path) {
    if let Err(error) = fs::write(marker_path(home), "") {
        tracing::warn!(%error, "cannot record the stop: if it is interrupted, the next start saves nothing automatically");
    }
}

/// Returns true if a stop began that did not save everything.
#[must_use]
pub fn is_marked(home: &Path) -> bool {
    marker_path(home).exists()
}

/// Removes the marker when everything is saved.
pub fn clear_marker(home: &Path) {
    // A marker that does not exist need not be removed.
    let _ = fs::remove_file(marker_path(home));
}
