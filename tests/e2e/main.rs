//! Everything that Chorus promises, shown on the real binaries: a file for each part or promise.

mod agents;
mod atomic_save;
mod cli;
mod contexts;
mod crash;
mod frames_memory;
mod history;
mod import;
mod lifecycle;
mod protocol_page;
mod real_data;
mod restore;
mod schema;
mod selectors;
mod session_files;
mod single_instance;
mod socket;
mod tidy;
mod tour;

use chorus_tests::{Bins, Home};

/// An empty home around the binaries of this package.
fn home() -> Home {
    Home::new(Bins { chorusd: env!("CARGO_BIN_EXE_chorusd-e2e"), chorusctl: env!("CARGO_BIN_EXE_chorusctl-e2e") })
}
