//! Starts `chorusd`. It detaches, writes `ready` to its standard output once it accepts connections, and closes it. If
//! it fails it writes the reason to standard error and exits.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use chorus_proto::error::exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{Error, os_error_text};

/// Maximum bytes kept of the daemon's output; an error message is much shorter.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// A daemon that was started and is not ready yet.
#[derive(Debug)]
pub(super) struct StartingDaemon {
    child: Child,
    program: PathBuf,
}

/// Why the daemon did not get ready.
#[derive(Debug)]
pub(super) enum StartError {
    Exited { status: u8, failure: Error },
    TimedOut(Error),
}

impl StartingDaemon {
    /// Starts `chorusd`, with `--socket` if one is given.
    pub(super) fn new(socket: Option<&Path>) -> Result<Self, Error> {
        let program = daemon_program();
        let mut command = Command::new(&program);
        command.arg("--detach").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(socket) = socket {
            command.arg("--socket").arg(socket);
        }
        match command.spawn() {
            Ok(child) => Ok(Self { child, program }),
            Err(error) => Err(spawn_error(&program, &error)),
        }
    }

    /// Waits until the daemon writes `ready`.
    pub(super) fn wait_until_ready(mut self, deadline: Instant) -> Result<(), StartError> {
        let mut said = PipeOutput::new(self.child.stdout.take().map(OwnedFd::from));
        let mut complaint = PipeOutput::new(self.child.stderr.take().map(OwnedFd::from));
        while !said.text.split(|byte| *byte == b'\n').any(|line| line == b"ready") {
            if said.pipe.is_none() && complaint.pipe.is_none() {
                return Err(self.exit_error(&complaint.text));
            }
            match read_ready(&mut [&mut said, &mut complaint], deadline) {
                Ok(true) => {}
                Ok(false) => return Err(StartError::TimedOut(timeout_error(&complaint.text))),
                Err(error) => {
                    return Err(StartError::TimedOut(
                        Error::no_daemon(os_error_text(&error)).with_hint("chorusctl daemon logs"),
                    ));
                }
            }
        }
        Ok(())
    }

    fn exit_error(&mut self, complaint: &[u8]) -> StartError {
        let code = self.child.wait().ok().and_then(|status| status.code());
        let status = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED);
        // Keep the statuses for refusals and conflicts; all others mean that no daemon runs.
        let shown = if matches!(status, exit::REFUSED | exit::CONFLICT) { status } else { exit::NO_DAEMON };
        let failure = parse_daemon_error(shown, complaint).unwrap_or_else(|| {
            let how =
                code.map_or_else(|| "was killed by a signal".to_owned(), |code| format!("exited with status {code}"));
            Error::new(shown, format!("{} {how} before it was ready", self.program.display()))
                .with_hint("chorusctl daemon logs")
        });
        StartError::Exited { status, failure }
    }
}

/// Runs `chorusd` with `flag` (`--rebuild` or `--salvage`) to its end and returns its JSON result.
///
/// # Errors
/// The program cannot be run, or failed; its own error message is used if it printed one.
pub fn run_repair(flag: &str, socket: Option<&Path>) -> Result<Box<RawValue>, Error> {
    run_to_json(&[flag], socket, None)
}

/// Runs `chorusd` with `arguments` to its end and returns its JSON result; `config` is the configuration file to use.
///
/// # Errors
/// As [`run_repair`].
pub fn run_to_json(
    arguments: &[impl AsRef<OsStr>],
    socket: Option<&Path>,
    config: Option<&Path>,
) -> Result<Box<RawValue>, Error> {
    let found = run_to_text(arguments, socket, config)?.trim().to_owned();
    RawValue::from_string(found).map_err(|error| chorus_proto::CallError::Malformed(error).into())
}

/// As [`run_to_json`], for a result that is a text.
///
/// # Errors
/// As [`run_repair`].
pub fn run_to_text(
    arguments: &[impl AsRef<OsStr>],
    socket: Option<&Path>,
    config: Option<&Path>,
) -> Result<String, Error> {
    run_with_input(arguments, socket, config, Stdio::null())
}

/// As [`run_to_text`], with something to read on standard input.
///
/// # Errors
/// As [`run_repair`].
fn run_with_input(
    arguments: &[impl AsRef<OsStr>],
    socket: Option<&Path>,
    config: Option<&Path>,
    input: Stdio,
) -> Result<String, Error> {
    let program = daemon_program();
    let mut command = Command::new(&program);
    command.args(arguments).stdin(input).envs(config.map(|file| ("CHORUS_CONFIG", file)));
    if let Some(socket) = socket {
        command.arg("--socket").arg(socket);
    }
    let said = command.output().map_err(|error| spawn_error(&program, &error))?;
    if !said.status.success() {
        return Err(program_error(&program, said.status, &said.stderr));
    }
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}

/// Has `chorusd` check the configuration, as a start does first. An older `chorusd`, which has no such option, counts as
/// satisfied.
///
/// # Errors
/// The configuration cannot be used, or the program cannot be run.
pub fn check_config(socket: Option<&Path>) -> Result<(), Error> {
    match run_repair("--check-config", socket) {
        Err(failure) if failure.message().contains("--check-config") => Ok(()),
        checked => checked.map(drop),
    }
}

/// A configuration that `chorusd --check-config` accepted.
#[derive(Debug, Deserialize)]
pub struct CheckedConfig {
    /// Path of the file.
    pub config: PathBuf,
    pub exists: bool,
    /// Names of the providers, including one that is there without being configured.
    pub providers: Vec<String>,
}

/// Has `chorusd` read the configuration, that of `file` if given.
///
/// # Errors
/// The configuration cannot be used, the program cannot be run, or it is too old to name the providers.
pub fn read_config(socket: Option<&Path>, file: Option<&Path>) -> Result<CheckedConfig, Error> {
    let checked = run_to_json(&["--check-config"], socket, file)?;
    serde_json::from_str(checked.get()).map_err(|error| chorus_proto::CallError::Malformed(error).into())
}

/// Has `chorusd` check a text as if it were the configuration file `file`.
///
/// # Errors
/// As [`read_config`].
pub fn check_config_text(socket: Option<&Path>, file: &Path, text: File) -> Result<CheckedConfig, Error> {
    let checked = run_with_input(&["config-file", "check"], socket, Some(file), text.into())?;
    serde_json::from_str(&checked).map_err(|error| chorus_proto::CallError::Malformed(error).into())
}

/// The error for a program that ended with `status`: its own message, if it printed one.
#[must_use]
pub fn program_error(program: &Path, status: ExitStatus, complaint: &[u8]) -> Error {
    let status = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED);
    let failure = parse_daemon_error(status, complaint);
    failure.unwrap_or_else(|| {
        Error::new(status, format!("{} failed", program.display())).with_hint("chorusctl daemon logs")
    })
}

/// The error for a program that cannot be started.
#[must_use]
pub fn spawn_error(program: &Path, error: &io::Error) -> Error {
    let shown = program.display();
    let failed = |why: &str| Error::no_daemon(format!("no daemon running, and {shown} cannot be started: {why}"));
    let is_path = program.components().count() > 1;
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            failed(&os_error_text(error)).with_hint(format!("check its permissions: ls -l {shown}"))
        }
        io::ErrorKind::NotFound if is_path && program.exists() => {
            failed("the interpreter or loader that it names does not exist").with_hint("install chorusd again")
        }
        io::ErrorKind::NotFound => {
            failed(&os_error_text(error)).with_hint("install chorusd next to chorusctl or in PATH, or set CHORUSD")
        }
        _ => failed(&os_error_text(error)).with_hint("install chorusd again, or set CHORUSD to another one"),
    }
}

/// Output read from a pipe; `pipe` is `None` at its end.
struct PipeOutput {
    pipe: Option<File>,
    text: Vec<u8>,
}

impl PipeOutput {
    fn new(pipe: Option<OwnedFd>) -> Self {
        Self { pipe: pipe.map(File::from), text: Vec::new() }
    }

    fn read(&mut self) {
        let mut piece = [0; 4096];
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(&mut piece) {
            Ok(0) => self.pipe = None,
            Ok(length) if self.text.len() < MAX_OUTPUT_BYTES => self.text.extend_from_slice(&piece[..length]),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.pipe = None,
        }
    }
}

/// Reads from the pipes that have data. Returns false if the deadline passed first.
fn read_ready(sources: &mut [&mut PipeOutput], deadline: Instant) -> io::Result<bool> {
    let left = deadline.saturating_duration_since(Instant::now());
    let heard: Vec<bool> = {
        let mut waiting: Vec<PollFd<'_>> = sources
            .iter()
            .filter_map(|source| source.pipe.as_ref())
            .map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN))
            .collect();
        match poll(&mut waiting, Some(&to_timespec(left))) {
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

/// Converts a duration for system calls.
#[must_use]
pub fn to_timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), tv_nsec: duration.subsec_nanos().into() }
}

fn timeout_error(complaint: &[u8]) -> Error {
    parse_daemon_error(exit::NO_DAEMON, complaint)
        .unwrap_or_else(|| Error::no_daemon("the daemon was not ready in time").with_hint("chorusctl daemon logs"))
}

/// Parses the daemon's `error:` and `hint:` lines.
fn parse_daemon_error(status: u8, complaint: &[u8]) -> Option<Error> {
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
    let failure = Error::new(status, what.to_owned());
    Some(match hint {
        Some(hint) => failure.with_hint(hint.trim_end().to_owned()),
        None => failure,
    })
}

/// Returns the path of `chorusd`: `$CHORUSD`, otherwise beside this program, otherwise from PATH.
#[must_use]
pub fn daemon_program() -> PathBuf {
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

    fn run(script: &str, within: Duration) -> Result<(), StartError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| StartError::TimedOut(Error::failed(error.to_string())))?;
        StartingDaemon { child, program: "chorusd".into() }.wait_until_ready(Instant::now() + within)
    }

    fn told(failure: &Error) -> String {
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
        let Err(StartError::Exited { status: 6, failure }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.exit_status(), exit::REFUSED);
        assert!(told(&failure).contains("\"home is open to others\"") && told(&failure).contains("\"chmod 700\""));
    }

    #[test]
    fn other_ends_mean_that_there_is_no_daemon() {
        let outcome = run("exit 1", Duration::from_secs(10));
        let Err(StartError::Exited { status: 1, failure }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.exit_status(), exit::NO_DAEMON);
    }

    #[test]
    fn patience_ends() {
        let outcome = run("exec sleep 5", Duration::from_millis(50));
        assert!(matches!(outcome, Err(StartError::TimedOut(_))), "{outcome:?}");
    }
}
