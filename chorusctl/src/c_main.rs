//! Starts the program from the C library directly. Rust's runtime would first look for the guard page of the main
//! thread's stack, for which glibc reads and parses `/proc/self/maps`, and install handlers that name a stack overflow
//! (docs/PERFORMANCE.md, Start of the client). Its other steps are done here.

use std::ffi::c_int;
use std::io::Write as _;
use std::panic::catch_unwind;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::stdio::{stderr, stdin, stdout};

/// Exit status after a panic, the same as that of Rust's runtime.
const PANICKED: c_int = 101;

/// Runs the program and returns its exit status.
#[must_use]
pub fn run() -> c_int {
    open_missing_streams();
    ignore_broken_pipes();
    let code = catch_unwind(|| c_int::from(crate::main())).unwrap_or(PANICKED);
    // Writes what the standard library has buffered for standard output.
    let _ = std::io::stdout().flush();
    code
}

/// Opens `/dev/null` for each standard stream that is closed. Otherwise the connection to the daemon would take its
/// number, and output would be sent as a request.
fn open_missing_streams() {
    let (input, output, errors) = (stdin(), stdout(), stderr());
    let mut streams = [&input, &output, &errors].map(|stream| PollFd::new(stream, PollFlags::empty()));
    let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut streams, Some(&no_wait)) == Ok(0) {
        return;
    }
    for _closed in streams.iter().filter(|stream| stream.revents().contains(PollFlags::NVAL)) {
        // A new file gets the lowest free number, which is that of the stream. Programs that are started have it, too.
        match rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()) {
            Ok(file) => std::mem::forget(file),
            Err(_) => std::process::abort(),
        }
    }
}

/// Makes a write to a closed pipe an error instead of the end of the process. The programs that are started have the
/// default again.
#[expect(unsafe_code, reason = "the C library has no safe call that sets what a signal does")]
fn ignore_broken_pipes() {
    // SAFETY: sets no handler, so that no code runs when the signal arrives.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}
