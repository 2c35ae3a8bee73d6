//! Starting `chorusd`. It detaches itself, writes `ready` to its standard output once it takes connections, and
//! lets go of it; where it fails, it says why on standard error and exits.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use chorus_proto::error::exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::value::RawValue;

use crate::error::{Failure, plain};

/// More than a daemon that cannot start has to say.
const LONGEST_COMPLAINT: usize = 64 * 1024;

/// A daemon that was started and is not ready yet.
#[derive(Debug)]
pub struct Spawned {
    child: Child,
    program: PathBuf,
}

/// Why it is not.
#[derive(Debug)]
pub enum NotReady {
    Exited { status: u8, failure: Failure },
    Late(Failure),
}

impl Spawned {
    /// Starts `chorusd`, for `socket` where the command line names one.
    ///
    /// # Errors
    /// [`Failure`] where the program is not found or cannot be run.
    pub fn new(socket: Option<&Path>) -> Result<Self, Failure> {
        let program = program();
        let mut command = Command::new(&program);
        command.arg("--detach").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(socket) = socket {
            command.arg("--socket").arg(socket);
        }
        match command.spawn() {
            Ok(child) => Ok(Self { child, program }),
            Err(error) => Err(missing(&program, &error)),
        }
    }

    /// Waits for `ready`.
    ///
    /// # Errors
    /// [`NotReady`].
    pub fn wait_until_ready(mut self, deadline: Instant) -> Result<(), NotReady> {
        let mut said = Gathered::new(self.child.stdout.take().map(OwnedFd::from));
        let mut complaint = Gathered::new(self.child.stderr.take().map(OwnedFd::from));
        while !said.text.split(|byte| *byte == b'\n').any(|line| line == b"ready") {
            if said.pipe.is_none() && complaint.pipe.is_none() {
                return Err(self.exited(&complaint.text));
            }
            match gather(&mut [&mut said, &mut complaint], deadline) {
                Ok(true) => {}
                Ok(false) => return Err(NotReady::Late(late(&complaint.text))),
                Err(error) => {
                    return Err(NotReady::Late(Failure::no_daemon(plain(&error)).hint("chorusctl daemon logs")));
                }
            }
        }
        Ok(())
    }

    fn exited(&mut self, complaint: &[u8]) -> NotReady {
        let code = self.child.wait().ok().and_then(|status| status.code());
        let status = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED);
        // Refusals and conflicts are told as such; anything else means that there is no daemon.
        let shown = if matches!(status, exit::REFUSED | exit::CONFLICT) { status } else { exit::NO_DAEMON };
        let failure = relay(shown, complaint).unwrap_or_else(|| {
            let how = code.map_or_else(|| "by a signal".to_owned(), |code| format!("with status {code}"));
            Failure::new(shown, format!("{} ended {how} before it was ready", self.program.display()))
                .hint("chorusctl daemon logs")
        });
        NotReady::Exited { status, failure }
    }
}

/// Runs `chorusd` with `flag`, `--rebuild` or `--salvage`, to its end and returns what it found.
///
/// # Errors
/// [`Failure`] where the program is not found or did not succeed; in its own words, where it has any.
pub fn repair(flag: &str, socket: Option<&Path>) -> Result<Box<RawValue>, Failure> {
    let program = program();
    let mut command = Command::new(&program);
    command.arg(flag).stdin(Stdio::null());
    if let Some(socket) = socket {
        command.arg("--socket").arg(socket);
    }
    let said = command.output().map_err(|error| missing(&program, &error))?;
    if !said.status.success() {
        return Err(ended(&program, said.status, &said.stderr));
    }
    let found = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    RawValue::from_string(found).map_err(|error| chorus_proto::CallError::Malformed(error).into())
}

/// The failure of a program that ended with `status`, in its own words if it has any.
#[must_use]
pub fn ended(program: &Path, status: ExitStatus, complaint: &[u8]) -> Failure {
    let status = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED);
    let failure = relay(status, complaint);
    failure
        .unwrap_or_else(|| Failure::new(status, format!("{} failed", program.display())).hint("chorusctl daemon logs"))
}

/// The failure of a program that cannot be started.
#[must_use]
pub fn missing(program: &Path, error: &io::Error) -> Failure {
    Failure::no_daemon(format!("no daemon runs, and {} cannot be started: {}", program.display(), plain(error)))
        .hint("put chorusd beside chorusctl or into PATH, or set CHORUSD")
}

/// What comes out of a pipe; `pipe` is gone once it ended.
struct Gathered {
    pipe: Option<File>,
    text: Vec<u8>,
}

impl Gathered {
    fn new(pipe: Option<OwnedFd>) -> Self {
        Self { pipe: pipe.map(File::from), text: Vec::new() }
    }

    fn read(&mut self) {
        let mut piece = [0; 4096];
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(&mut piece) {
            Ok(0) => self.pipe = None,
            Ok(length) if self.text.len() < LONGEST_COMPLAINT => self.text.extend_from_slice(&piece[..length]),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.pipe = None,
        }
    }
}

/// Reads from whichever has something to say; `false` where the deadline passed first.
fn gather(sources: &mut [&mut Gathered], deadline: Instant) -> io::Result<bool> {
    let left = deadline.saturating_duration_since(Instant::now());
    let heard: Vec<bool> = {
        let mut waiting: Vec<PollFd<'_>> = sources
            .iter()
            .filter_map(|source| source.pipe.as_ref())
            .map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN))
            .collect();
        match poll(&mut waiting, Some(&timespec(left))) {
            Ok(0) => return Ok(false),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        waiting.iter().map(|fd| !fd.revents().is_empty()).collect()
    };
    let open = sources.iter_mut().filter(|source| source.pipe.is_some());
    open.zip(heard).filter(|(_, heard)| *heard).for_each(|(source, _)| source.read());
    Ok(true)
}

/// A duration as the system wants it.
#[must_use]
pub fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), tv_nsec: duration.subsec_nanos().into() }
}

fn late(complaint: &[u8]) -> Failure {
    relay(exit::NO_DAEMON, complaint)
        .unwrap_or_else(|| Failure::no_daemon("the daemon was not ready in time").hint("chorusctl daemon logs"))
}

/// The daemon's own words: its last `error:`, and the `hint:` after it.
fn relay(status: u8, complaint: &[u8]) -> Option<Failure> {
    let complaint = String::from_utf8_lossy(complaint);
    let complaint = complaint.trim();
    if complaint.is_empty() {
        return None;
    }
    let (what, hint) = match complaint.split_once("\nhint: ") {
        Some((what, hint)) => (what, Some(hint)),
        None => (complaint, None),
    };
    let what = what.strip_prefix("error: ").unwrap_or(what).trim_end();
    let failure = Failure::new(status, what.to_owned());
    Some(match hint {
        Some(hint) => failure.hint(hint.trim_end().to_owned()),
        None => failure,
    })
}

/// `$CHORUSD`, else the one beside this program, else whichever PATH holds.
#[must_use]
pub fn program() -> PathBuf {
    if let Some(given) = std::env::var_os("CHORUSD").filter(|given| !given.is_empty()) {
        return given.into();
    }
    let name = format!("chorusd{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok().map(|me| me.with_file_name(&name));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, within: Duration) -> Result<(), NotReady> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| NotReady::Late(Failure::failed(error.to_string())))?;
        Spawned { child, program: "chorusd".into() }.wait_until_ready(Instant::now() + within)
    }

    fn told(failure: &Failure) -> String {
        format!("{failure:?}")
    }

    #[test]
    fn ready_is_waited_for() {
        assert!(run("echo loading; sleep 0.05; echo ready; exec sleep 1", Duration::from_secs(10)).is_ok());
    }

    #[test]
    fn its_own_words_and_status_are_relayed() {
        let outcome = run(
            "echo 'error: home is open to others' >&2; echo 'hint: chmod 700' >&2; exit 6",
            Duration::from_secs(10),
        );
        let Err(NotReady::Exited { status: 6, failure }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.status(), exit::REFUSED);
        assert!(told(&failure).contains("\"home is open to others\"") && told(&failure).contains("\"chmod 700\""));
    }

    #[test]
    fn other_ends_mean_that_there_is_no_daemon() {
        let outcome = run("exit 1", Duration::from_secs(10));
        let Err(NotReady::Exited { status: 1, failure }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.status(), exit::NO_DAEMON);
    }

    #[test]
    fn patience_ends() {
        let outcome = run("exec sleep 5", Duration::from_millis(50));
        assert!(matches!(outcome, Err(NotReady::Late(_))), "{outcome:?}");
    }
}
