//! Everything that Chorus promises, shown on the real binaries: a file for each part or promise.

mod agents;
mod atomic_save;
mod cli;
mod contexts;
mod crash;
mod deleting;
mod export;
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

/// An empty home around the binaries of this package.
fn home() -> chorus_tests::Home {
    chorus_tests::home!()
}
