//! Errors of commands: a message, a hint, and the exit status.

use std::borrow::Cow;
use std::io;

use chorus_proto::error::exit;
use chorus_proto::peer_check::ForeignServer;
use chorus_proto::{CallError, ErrorKind, RpcError};

use crate::connect;
use crate::ui::Stderr;

/// Error of a command. Commands return it; only `main` prints it and ends the process.
#[derive(Debug)]
pub struct Error(Box<Reason>);

#[derive(Debug)]
enum Reason {
    Message {
        what: Cow<'static, str>,
        hint: Option<Cow<'static, str>>,
        status: u8,
    },
    /// The message was printed already.
    Reported {
        status: u8,
    },
    /// Nobody reads standard output any more (`| head`). This counts as success.
    StdoutClosed,
}

impl Error {
    /// Creates an error with this exit status.
    #[must_use]
    pub fn new(status: u8, what: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Reason::Message { what: what.into(), hint: None, status }))
    }

    /// The operation failed: exit status 1.
    #[must_use]
    pub fn failed(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(exit::FAILED, what)
    }

    /// The command line is invalid: exit status 2.
    #[must_use]
    pub fn usage(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(exit::USAGE, what)
    }

    /// No daemon runs and none could be started: exit status 4.
    #[must_use]
    pub fn no_daemon(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(exit::NO_DAEMON, what)
    }

    /// Not allowed, or not confirmed: exit status 6.
    #[must_use]
    pub fn refused(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(exit::REFUSED, what)
    }

    /// An error whose message was printed already.
    #[must_use]
    pub fn reported(status: u8) -> Self {
        Self(Box::new(Reason::Reported { status }))
    }

    /// The error for a file that cannot be read or written.
    #[must_use]
    pub fn for_file(name: &str, error: &io::Error) -> Self {
        let what = format!("{name}: {}", os_error_text(error));
        match error.kind() {
            io::ErrorKind::NotFound => Self::new(exit::NOT_FOUND, what)
                .with_hint("check the path; a relative one begins at the current directory"),
            io::ErrorKind::PermissionDenied => Self::refused(what).with_hint("ls -ld shows who may read and write it"),
            _ => Self::failed(what),
        }
    }

    /// The error for a failed write to standard output. A closed pipe ends the program successfully.
    #[must_use]
    pub fn for_stdout(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self(Box::new(Reason::StdoutClosed))
        } else {
            Self::failed(format!("failed to write the output: {}", os_error_text(&error)))
        }
    }

    /// Adds a hint: what the user can do about it.
    #[must_use]
    pub fn with_hint(mut self, advice: impl Into<Cow<'static, str>>) -> Self {
        if let Reason::Message { hint, .. } = &mut *self.0 {
            *hint = Some(advice.into());
        }
        self
    }

    /// Appends `more` to the message.
    #[must_use]
    pub fn with_detail(mut self, more: &str) -> Self {
        if let Reason::Message { what, .. } = &mut *self.0 {
            *what = format!("{what}; {more}").into();
        }
        self
    }

    /// Puts `place` before the message, unless the message contains it.
    #[must_use]
    pub fn with_context(mut self, place: &str) -> Self {
        if let Reason::Message { what, .. } = &mut *self.0
            && !what.contains(place)
        {
            *what = format!("{place}: {what}").into();
        }
        self
    }

    /// Returns the message, without the hint; empty if it was printed already.
    #[must_use]
    pub fn message(&self) -> &str {
        match &*self.0 {
            Reason::Message { what, .. } => what,
            Reason::Reported { .. } | Reason::StdoutClosed => "",
        }
    }

    /// Returns the exit status.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match *self.0 {
            Reason::Message { status, .. } | Reason::Reported { status } => status,
            Reason::StdoutClosed => exit::SUCCESS,
        }
    }

    /// Returns true if nobody reads standard output any more.
    #[must_use]
    pub fn is_stdout_closed(&self) -> bool {
        matches!(*self.0, Reason::StdoutClosed)
    }

    /// Prints the `error:` and `hint:` lines.
    pub fn print(&self, notes: Stderr) {
        if let Reason::Message { what, hint, .. } = &*self.0 {
            notes.error(what);
            if let Some(hint) = hint {
                notes.hint(hint);
            }
        }
    }
}

impl From<RpcError> for Error {
    fn from(error: RpcError) -> Self {
        let kind = error.kind();
        let failure = Self::new(kind.exit_status(), error.message);
        match (error.data.and_then(|data| data.hint), kind) {
            (Some(hint), _) => failure.with_hint(hint),
            (None, ErrorKind::Unsupported) => {
                failure.with_hint("the daemon may be of an older release: chorusctl daemon restart")
            }
            (None, ErrorKind::Internal) => failure.with_hint("chorusctl daemon logs"),
            (None, _) => failure,
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        const LOGS: &str = "chorusctl daemon logs; the request may have been carried out";
        match error {
            CallError::Rpc(error) => error.into(),
            CallError::Malformed(error) => Self::failed(format!("the daemon's answer cannot be read: {error}"))
                .with_hint("chorusctl and chorusd may be of different releases: chorusctl daemon restart"),
            CallError::Io(error) => match error.kind() {
                // The client refused the request before sending anything.
                io::ErrorKind::InvalidInput => Self::usage(format!("the request is too long: {error}"))
                    .with_hint("send it in parts; whole transcripts go through: chorusctl session import FILE"),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    Self::failed("the daemon did not answer in time").with_hint(LOGS)
                }
                io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                    Self::failed("the daemon went away before it answered").with_hint(LOGS)
                }
                _ if ForeignServer::is_cause_of(&error) => connect::untrusted_error(&error),
                _ => {
                    Self::failed(format!("connection to the daemon failed: {}", os_error_text(&error))).with_hint(LOGS)
                }
            },
        }
    }
}

/// Formats a system error without its number, with a lower-case first letter.
#[must_use]
pub fn os_error_text(error: &io::Error) -> String {
    let text = error.to_string();
    let cut = text.rfind(" (os error ").unwrap_or(text.len());
    let text = &text[..cut];
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_output_is_no_failure() {
        assert_eq!(Error::for_stdout(io::ErrorKind::BrokenPipe.into()).exit_status(), exit::SUCCESS);
        assert_eq!(Error::for_stdout(io::ErrorKind::StorageFull.into()).exit_status(), exit::FAILED);
    }

    #[test]
    fn errors_of_the_system_read_as_fragments() {
        assert_eq!(os_error_text(&io::Error::from_raw_os_error(2)), "no such file or directory");
    }

    #[test]
    fn a_broken_connection_never_says_that_no_daemon_runs() {
        let failure = Error::from(CallError::Io(io::ErrorKind::UnexpectedEof.into()));
        assert_eq!(failure.exit_status(), exit::FAILED);
    }
}
