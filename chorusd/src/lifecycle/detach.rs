//! Leaving the terminal.

use std::fs::File;
use std::io::{self, Write as _};

use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

/// Becomes the leader of a session of its own, so that no terminal's end ends it.
pub fn start_session() {
    // Fails only for a process group leader, which has left already or was started on purpose.
    let _ = rustix::process::setsid();
}

/// Tells whoever started the daemon that it takes connections.
pub fn print_ready() {
    // Whoever started us may be gone; that is no reason to stop.
    let mut out = io::stdout();
    let _ = out.write_all(b"ready\n").and_then(|()| out.flush());
}

/// Lets go of the streams that whoever started us waits on; what is still printed goes to the log.
pub fn redirect_streams(log: &File) {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&null);
        let _ = dup2_stdout(&null);
    }
    let _ = dup2_stderr(log);
}
