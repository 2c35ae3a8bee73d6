//! What the end-to-end tests and the benches share: a sealed home, a running daemon, the command line, raw
//! connections, and waiting for a condition with a deadline.

pub mod browser;
pub mod chat;
pub mod clock;
pub mod ctl;
pub mod daemon;
pub mod data;
pub mod discord;
pub mod disk;
pub mod exported;
pub mod fuzz;
pub mod gate;
pub mod held;
pub mod home;
pub mod import;
pub mod inside;
pub mod many;
pub mod measure;
pub mod model_server;
pub mod process;
pub mod raw;
pub mod rng;
pub mod running;
pub mod schema;
pub mod scripted;
pub mod strace;
pub mod wait;

use std::fs::OpenOptions;
use std::io::Write as _;

pub use clock::Hands;
pub use ctl::Output;
pub use daemon::Daemon;
pub use gate::Gate;
pub use home::{Bins, Home};
pub use inside::Inside;
pub use raw::Raw;
pub use running::Running;
pub use wait::{DEADLINE, wait_until};

/// Says why a test is not run here, past the capture of test output, and notes it in the file that `CHORUS_TEST_SKIPS`
/// names, one line each: `.ci/run` shows and counts them.
pub fn skip(why: &str) {
    let line = format!("{}: {why}\n", std::thread::current().name().unwrap_or("a test"));
    // Only the macros that print are captured.
    let _ = std::io::stderr().write_all(format!("skipped {line}").as_bytes());
    let Some(list) = std::env::var_os("CHORUS_TEST_SKIPS") else { return };
    let noted =
        OpenOptions::new().append(true).create(true).open(&list).and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(noted.is_ok(), "{}: {noted:?}", list.display());
}
