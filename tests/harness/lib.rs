//! Shared code of the end-to-end tests and benches: isolated homes, running daemons, the command line, raw connections,
//! and waiting for conditions with a deadline.
//!
//! Helpers panic if a step fails or takes longer than [`DEADLINE`].

pub mod browser;
pub mod bulk_data;
pub mod client_ext;
pub mod ctl;
pub mod daemon;
pub mod discord;
pub mod export_checks;
pub mod fake_daemon;
pub mod frozen_disk;
pub mod fuzz;
pub mod gate;
pub mod home;
pub mod import;
pub mod in_process;
pub mod interactive;
pub mod manual_clock;
pub mod measure;
pub mod model_server;
pub mod process;
pub mod raw;
pub mod real_data;
pub mod rng;
pub mod schema;
pub mod small_disk;
pub mod strace;
pub mod wait;

use std::fs::OpenOptions;
use std::io::Write as _;

pub use ctl::Output;
pub use daemon::Daemon;
pub use gate::Gate;
pub use home::{Bins, Home};
pub use in_process::InProcessDaemon;
pub use interactive::InteractiveCommand;
pub use manual_clock::ManualClock;
pub use raw::RawConnection;
pub use wait::{DEADLINE, wait_until};

/// Reports why a test is skipped on standard error, past the capture of test output, and appends a line to the file
/// that `CHORUS_TEST_SKIPS` names. `.ci/run` prints and counts these lines.
pub fn skip(why: &str) {
    let line = format!("{}: {why}\n", std::thread::current().name().unwrap_or("a test"));
    // The test harness captures only the printing macros.
    let _ = std::io::stderr().write_all(format!("skipped {line}").as_bytes());
    let Some(list) = std::env::var_os("CHORUS_TEST_SKIPS") else { return };
    let noted =
        OpenOptions::new().append(true).create(true).open(&list).and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(noted.is_ok(), "{}: {noted:?}", list.display());
}
