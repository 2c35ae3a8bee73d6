//! `chorusctl config`: what is in force and where it comes from, edits of config.toml, and what a running daemon takes of them.

mod broken;
mod edit;
mod offline;
mod other_file;
mod reload;
mod set;
mod show;

use chorus_tests::Home;

/// The text of config.toml.
fn text(home: &Home) -> String {
    std::fs::read_to_string(home.path.join("config.toml")).expect("config.toml")
}
