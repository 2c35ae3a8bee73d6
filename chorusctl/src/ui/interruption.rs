//! The last words of a command that Ctrl-C or SIGTERM ends in the middle of long work: how far it came, and how to continue.

#![expect(clippy::disallowed_types, reason = "the client does without chorus_base")]

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::Stderr;
use super::progress_bar::format_amount;

/// The work that runs; a later one hides an earlier.
static RUNNING: Mutex<Vec<Work>> = Mutex::new(Vec::new());
static NEXT_ID: AtomicU64 = AtomicU64::new(0);
static LISTENER: Once = Once::new();
/// The signals, as bits, that another handler decides about while no work runs.
static HANDED_OVER: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct Work {
    id: u64,
    stderr: Stderr,
    advice: String,
    /// Done, total and unit.
    reached: Option<(u64, u64, String)>,
    /// Says nothing before the first report: nothing has happened by then.
    after_report: bool,
    /// A file that is incomplete.
    remove: Option<PathBuf>,
    /// A process that does the work.
    stop: Option<Pid>,
}

/// Explains an interruption until it is dropped.
#[derive(Debug)]
pub struct Interruption {
    id: u64,
}

impl Interruption {
    /// Lets Ctrl-C print how far the work came and `advice`, which says how to continue, before it ends the program. The temporary
    /// files named to it are removed.
    #[must_use]
    pub fn explain(stderr: Stderr, advice: impl Into<String>) -> Self {
        LISTENER.call_once(listen);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let advice = advice.into();
        running().push(Work { id, stderr, advice, reached: None, after_report: false, remove: None, stop: None });
        Self { id }
    }

    /// Says nothing before the first report of progress.
    #[must_use]
    pub fn after_report(self) -> Self {
        self.change(|work| work.after_report = true);
        self
    }

    /// Removes this file, too, when the program is interrupted.
    #[must_use]
    pub fn removing(self, file: PathBuf) -> Self {
        self.change(|work| work.remove = Some(file));
        self
    }

    /// Starts a process that is ended, too, when the program is interrupted.
    ///
    /// # Errors
    /// As [`Command::spawn`].
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        // Locked, so that no signal comes between its start and the note of its number.
        let mut running = running();
        let child = command.spawn()?;
        let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(work) = running.iter_mut().find(|work| work.id == self.id) {
            work.stop = process;
        }
        Ok(child)
    }

    /// Notes how far the work is; `total` 0 means that it is not known.
    pub fn note(&self, done: u64, total: u64, unit: &str) {
        self.change(|work| match &mut work.reached {
            Some((was_done, was_total, was_unit)) if was_unit == unit => (*was_done, *was_total) = (done, total),
            reached => *reached = Some((done, total, unit.to_owned())),
        });
    }

    fn change(&self, change: impl FnOnce(&mut Work)) {
        if let Some(work) = running().iter_mut().find(|work| work.id == self.id) {
            change(work);
        }
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        running().retain(|work| work.id != self.id);
    }
}

/// Leaves these signals to another handler of this program while no work runs.
pub fn hand_over(signals: &[i32]) {
    let bits = signals.iter().fold(0, |bits, signal| bits | bit(*signal));
    HANDED_OVER.fetch_or(bits, Ordering::Relaxed);
}

/// The bit of a signal, as in /proc/self/status.
fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Returns true if the parent process set SIGINT to ignored, as a shell does for `chorusctl send … &` in a script. Read
/// from /proc/self/status; false on systems without it.
#[must_use]
pub fn is_sigint_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let signals = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let signals = signals.and_then(|signals| u64::from_str_radix(signals.trim(), 16).ok());
    signals.is_some_and(|signals| signals & bit(SIGINT) != 0)
}

/// Starts the thread that waits for signals. Without it, a signal ends the program without words.
fn listen() {
    let signals = if is_sigint_ignored() { Signals::new([SIGTERM]) } else { Signals::new([SIGINT, SIGTERM]) };
    let Ok(mut signals) = signals else { return };
    let _ = thread::Builder::new().name("interruption".into()).spawn(move || {
        for signal in signals.forever() {
            // Kept, so that nothing is drawn over the last words.
            let mut running = running();
            match running.pop() {
                Some(work) => work.end(),
                None if HANDED_OVER.load(Ordering::Relaxed) & bit(signal) != 0 => continue,
                None => {}
            }
            let _ = emulate_default_handler(signal);
        }
    });
}

fn running() -> MutexGuard<'static, Vec<Work>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Work {
    fn end(self) {
        if let Some(process) = self.stop {
            // It may ignore SIGINT, as a shell arranges for what runs in the background of a script.
            let _ = kill_process(process, Signal::TERM);
        }
        if let Some(file) = &self.remove {
            let _ = fs::remove_file(file);
        }
        if self.after_report && self.reached.is_none() {
            return;
        }
        let mut stderr = io::stderr();
        if stderr.is_terminal() {
            // The bar, and the ^C of the terminal.
            let _ = write!(stderr, "\r\x1b[K");
        }
        self.stderr.line(&describe(self.reached.as_ref()));
        self.stderr.hint(&self.advice);
    }
}

fn describe(reached: Option<&(u64, u64, String)>) -> String {
    match reached {
        None | Some((0, 0, _)) => "interrupted".to_owned(),
        Some((done, 0, unit)) => format!("interrupted after {}", format_amount(*done, unit)),
        Some((done, total, unit)) if unit == "bytes" => {
            format!("interrupted after {} of {}", format_amount(*done, unit), format_amount(*total, unit))
        }
        Some((done, total, unit)) => format!("interrupted after {done} of {}", format_amount(*total, unit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_say_how_far_it_came() {
        let at = |done, total, unit: &str| describe(Some(&(done, total, unit.to_owned())));
        assert_eq!(at(12, 40, "files"), "interrupted after 12 of 40 files");
        assert_eq!(at(1 << 20, 3 << 20, "bytes"), "interrupted after 1.0 MiB of 3.0 MiB");
        assert_eq!(at(5, 0, "files"), "interrupted after 5 files");
        assert_eq!([at(0, 0, "files"), describe(None)], ["interrupted", "interrupted"]);
    }
}
