//! Detaches the daemon from the terminal that started it.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

/// Makes the process the leader of a session of its own, so that closing the terminal does not end it.
pub fn start_session() {
    // Fails only for a process group leader, which has left already or was started as one on purpose.
    let _ = rustix::process::setsid();
}

/// Returns true if the process has a controlling terminal, whose end ends the process.
#[must_use]
pub fn has_terminal() -> bool {
    let no_control = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).unwrap_or_default();
    File::options().read(true).custom_flags(no_control).open("/dev/tty").is_ok()
}

/// Tells the program that started the daemon that it accepts connections.
pub fn print_ready() {
    // That program may have ended, which is no reason to stop.
    let mut out = io::stdout();
    let _ = out.write_all(b"ready\n").and_then(|()| out.flush());
}

/// Releases standard input and output, on which the starting program waits, and redirects standard error to the log.
pub fn redirect_streams(log: &File) {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&null);
        let _ = dup2_stdout(&null);
    }
    let _ = dup2_stderr(log);
}
