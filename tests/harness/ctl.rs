//! Runs commands to their end and checks their output.

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::home::Home;
use crate::wait::{DEADLINE, wait_until};

/// Output and exit status of a command.
#[derive(Debug)]
pub struct Output {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `chorusctl` with empty standard input.
pub fn chorusctl<S: AsRef<OsStr>>(home: &Home, args: impl IntoIterator<Item = S>) -> Output {
    chorusctl_with(home, args, b"")
}

/// Runs `chorusctl` with `stdin`.
pub fn chorusctl_with<S: AsRef<OsStr>>(home: &Home, args: impl IntoIterator<Item = S>, stdin: &[u8]) -> Output {
    let mut command = home.command(home.bins.chorusctl);
    command.args(args);
    run_command(command, stdin)
}

/// Runs any command with `stdin`.
pub fn run_command(mut command: Command, stdin: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let stdin = stdin.to_vec();
    // A command may close its input without reading it.
    let writer = std::thread::spawn(move || _ = pipe.write_all(&stdin));
    let pid = child.id();
    let reader = std::thread::spawn(move || child.wait_with_output().expect("its output"));
    let what = format!("{command:?} (pid {pid}) to end");
    wait_until(&what, DEADLINE * 3, || reader.is_finished().then_some(()));
    let output = reader.join().expect("the reader");
    writer.join().expect("the writer");
    Output {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
    }
}

impl Output {
    /// Checks that the command succeeded and returns its standard output.
    pub fn expect_success(self) -> String {
        assert_eq!(self.status, 0, "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Checks that the command succeeded and parses its standard output as one JSON value.
    #[must_use]
    pub fn expect_json(self) -> Value {
        serde_json::from_str(&self.expect_success()).expect("one JSON value")
    }

    /// Checks the exit status of a failed command, that it printed an `error:` line, or an error as JSON, and nothing on standard output.
    /// Returns its standard error.
    pub fn expect_failure(&self, status: i32) -> &str {
        assert_eq!(self.status, status, "{}{}", self.stdout, self.stderr);
        let is_error = |line: &str| line.starts_with("error: ") || line.starts_with(r#"{"error":{"kind":"#);
        assert!(self.stderr.lines().any(is_error), "no error line: {}", self.stderr);
        assert_eq!(self.stdout, "", "a failure prints no result");
        &self.stderr
    }

    /// The same as [`Output::expect_failure`], and checks that there is a hint.
    pub fn expect_failure_with_hint(&self, status: i32) -> &str {
        let said = self.expect_failure(status);
        assert!(said.lines().any(|line| line.starts_with("hint: ") || line.contains(r#","hint":"#)), "no hint: {said}");
        said
    }
}
