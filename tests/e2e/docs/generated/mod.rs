//! What comes out of the command line's own tree: completions, manual pages, the reference page.

mod cli_page;
mod completions;
mod configuration;
mod man;
mod shells;

pub use completions::{named, offered};

use std::fs;
use std::path::Path;

/// Compares the file at `path` of the workspace with `text`; `cargo xtask bless` regenerates it.
fn compare(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    if std::env::var_os("CHORUS_BLESS").is_some() {
        fs::write(&file, text).expect("writes the file");
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(written == text, "{path} is out of date: run `cargo xtask bless`");
}
