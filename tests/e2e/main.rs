//! Everything that Chorus promises, shown on the real binaries: a file for each part or promise.

mod agents;
mod approvals;
mod atomic_save;
mod audit;
mod backup;
mod cli;
mod client_example;
mod contexts;
mod crash;
mod deleting;
mod discord;
mod doctor;
mod events;
mod export;
mod faults;
mod file_tools;
mod fixtures;
mod frames_memory;
mod full_disk;
mod fuzzing;
mod generated;
mod git_tools;
mod history;
mod import;
mod instance;
mod journal;
mod ledger;
mod lifecycle;
mod long;
mod memory;
mod models;
mod moving;
mod odd_clocks;
mod permissions;
mod protocol_page;
mod real_data;
mod redact;
mod restore;
mod sandbox;
mod schema;
mod selectors;
mod selfedit;
mod service;
mod session_files;
mod settings;
mod single_instance;
mod socket;
mod story;
mod summaries;
mod system_calls;
mod tasks;
mod tidy;
mod tools_page;
mod tour;
mod tree;
mod turns;
mod usage;
mod window;

/// An empty home around the binaries of this package.
fn home() -> chorus_tests::Home {
    chorus_tests::home!()
}
