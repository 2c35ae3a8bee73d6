//! Says why a connection failed, and what to do about it.

use std::io;

use serde::Deserialize;

use crate::error::RemoteError;
use crate::ssh::RemoteCommand;

/// Exit status of a shell that does not find a command, and of one that cannot run it.
const NOT_FOUND: i32 = 127;
const NOT_RUN: i32 = 126;
/// Messages of shells about a program whose interpreter or loader does not exist.
const INTERPRETER_MISSING: [&str; 2] = ["bad interpreter", "required file not found"];
/// Exit status of ssh if the connection fails.
const SSH_FAILED: i32 = 255;
/// Exit statuses of chorusctl: of a failure, an invalid command line, something that does not exist, and an unreachable daemon.
const FAILED: u8 = 1;
const USAGE: u8 = 2;
const MISSING: u8 = 3;
const NO_DAEMON: u8 = 4;

/// Messages of ssh about what does not change if it is tried again.
const PERMANENT: [&str; 4] =
    ["Permission denied", "Host key verification failed", "Too many authentication failures", "Bad configuration"];

/// The reason why a line or a connection failed.
#[derive(Debug)]
pub(crate) enum LineFailure {
    /// ssh has ended.
    Exited {
        status: Option<i32>,
        messages: String,
        /// The user has seen the messages.
        are_shown: bool,
    },
    TimedOut,
    NotStarted(io::Error),
}

impl LineFailure {
    /// Returns true if ssh itself failed, and not the command at the other end.
    pub(crate) fn is_of_ssh(&self) -> bool {
        matches!(self, Self::Exited { status: Some(SSH_FAILED), .. })
    }
}

impl From<io::Error> for LineFailure {
    fn from(error: io::Error) -> Self {
        Self::NotStarted(error)
    }
}

/// The error that chorusctl at the other end prints with `--json`.
#[derive(Deserialize)]
struct Report {
    error: ReportedError,
}

#[derive(Deserialize)]
struct ReportedError {
    message: String,
    hint: Option<String>,
}

pub(crate) fn explain(command: &RemoteCommand<'_>, failure: &LineFailure) -> RemoteError {
    let host = command.host;
    let (status, messages, are_shown) = match failure {
        LineFailure::TimedOut => {
            let message = format!("{host} did not answer in time");
            return RemoteError::new(FAILED, message, format!("check that this works: ssh {host}")).temporary();
        }
        LineFailure::NotStarted(error) => {
            return RemoteError::new(FAILED, format!("failed to start ssh: {error}"), "install OpenSSH's client");
        }
        LineFailure::Exited { status, messages, are_shown } => (*status, messages, *are_shown),
    };
    let mut reports = messages.lines().filter_map(|line| serde_json::from_str::<Report>(line.trim()).ok());
    let reported = reports.next_back().map(|report| report.error);
    match (status, reported) {
        (Some(SSH_FAILED), _) => {
            let last = messages.lines().rev().map(str::trim).find(|line| !line.is_empty());
            let why = last.filter(|_| !are_shown).map(|line| format!(": {line}")).unwrap_or_default();
            let failure = RemoteError::new(
                FAILED,
                format!("failed to connect to {host}{why}"),
                format!("check that this works: ssh {host}"),
            );
            let is_permanent = PERMANENT.iter().any(|text| messages.contains(text));
            if is_permanent { failure } else { failure.temporary() }
        }
        // The shell reports a program whose interpreter is missing as one that is missing.
        (Some(NOT_FOUND), _) if INTERPRETER_MISSING.iter().any(|text| messages.contains(text)) => RemoteError::new(
            MISSING,
            format!("`{}` cannot be run on {host}: the interpreter that it names does not exist", command.program),
            format!("see its first line: ssh {host} head -1 {}", command.program),
        ),
        (Some(NOT_FOUND), _) if command.program.contains('/') => RemoteError::new(
            MISSING,
            format!("`{}` does not exist on {host}", command.program),
            command.not_found_hint.clone(),
        ),
        (Some(NOT_FOUND), _) => RemoteError::new(
            MISSING,
            format!("`{}` is not in PATH on {host}", command.program),
            command.not_found_hint.clone(),
        ),
        (Some(NOT_RUN), _) => RemoteError::new(
            MISSING,
            format!("`{}` cannot be run on {host}", command.program),
            format!("check its permissions: ssh {host} ls -l {}", command.program),
        ),
        (Some(2), _) => RemoteError::new(USAGE, format!("{host}: {}", command.too_old), "update Chorus there"),
        (Some(status), Some(error)) => {
            let status = u8::try_from(status).unwrap_or(FAILED);
            let hint = error.hint.unwrap_or_else(|| "see its log: chorusctl daemon logs".to_owned());
            let failure = RemoteError::new(status, format!("{host}: {}", error.message), hint);
            if status == NO_DAEMON { failure.temporary() } else { failure }
        }
        (status, None) => {
            let last = messages.lines().rev().map(str::trim).find(|line| !line.is_empty());
            let why = last.map(|line| format!(": {line}")).unwrap_or_default();
            let failure = RemoteError::new(
                FAILED,
                format!("`{}` did not start on {host}{why}", command.program),
                format!("try there: ssh {host}"),
            );
            // A signal, for example because the other machine shuts down.
            if status.is_none() { failure.temporary() } else { failure }
        }
        (None, Some(error)) => {
            RemoteError::new(FAILED, format!("{host}: {}", error.message), format!("check: ssh {host}")).temporary()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(status: i32, messages: &str) -> (u8, String, String, bool) {
        let command = RemoteCommand {
            host: "box",
            program: "chorusctl",
            line: String::new(),
            greeting: "",
            not_found_hint: "install it".into(),
            too_old: "too old",
        };
        let failure = LineFailure::Exited { status: Some(status), messages: messages.into(), are_shown: false };
        let RemoteError { status, message, hint, is_temporary } = explain(&command, &failure);
        (status, message, hint, is_temporary)
    }

    #[test]
    fn each_way_to_fail_has_its_message() {
        for (status, messages, expected, is_temporary) in [
            (
                255,
                "Warning: x\nssh: connect to host box port 22: Connection refused\n",
                "failed to connect to box: ssh: connect to host box port 22: Connection refused",
                true,
            ),
            (
                255,
                "mara@box: Permission denied (publickey).\r\n",
                "failed to connect to box: mara@box: Permission denied (publickey).",
                false,
            ),
            (
                255,
                "No ED25519 host key is known for box and you have requested strict checking.\nHost key verification failed.\n",
                "failed to connect to box: Host key verification failed.",
                false,
            ),
            (127, "bash: line 1: chorusctl: command not found\n", "`chorusctl` is not in PATH on box", false),
            (
                127,
                "bash: line 1: /bin/chorusctl: /no/sh: bad interpreter: No such file or directory\n",
                "`chorusctl` cannot be run on box: the interpreter that it names does not exist",
                false,
            ),
            (126, "bash: line 1: /bin/chorusctl: Permission denied\n", "`chorusctl` cannot be run on box", false),
            (
                2,
                "{\"error\":{\"kind\":\"usage\",\"message\":\"unrecognized subcommand 'dial-stdio'\"}}",
                "box: too old",
                false,
            ),
            (
                4,
                "noise\n{\"error\":{\"kind\":\"no_daemon\",\"message\":\"no daemon running\",\"hint\":\"chorusctl daemon start\"}}\n",
                "box: no daemon running",
                true,
            ),
            (
                1,
                "This account is not available.\n",
                "`chorusctl` did not start on box: This account is not available.",
                false,
            ),
            (0, "", "`chorusctl` did not start on box", false),
        ] {
            let (_, message, hint, temporary) = explained(status, messages);
            assert_eq!((&*message, temporary), (expected, is_temporary));
            assert!(!hint.is_empty(), "{message}");
        }
        assert_eq!(explained(4, "{\"error\":{\"message\":\"none\",\"hint\":\"start\"}}").2, "start");
    }
}
