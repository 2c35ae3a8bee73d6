//! Errors of commands: a message, a hint, and the exit status.

use std::borrow::Cow;
use std::io;

use chorus_proto::error::{CODE_METHOD_NOT_FOUND, exit};
use chorus_proto::peer_check::ForeignServer;
use chorus_proto::{CallError, ErrorKind, RpcError};
use chorus_remote::RemoteError;
use serde::Serialize;

use crate::ui::Stderr;
use crate::{connect, host_select};

/// Error of a command. Commands return it; only `main` prints it and ends the process.
#[derive(Debug)]
pub struct Error(Box<Reason>);

#[derive(Debug)]
enum Reason {
    Message {
        what: Cow<'static, str>,
        hint: Option<Cow<'static, str>>,
        status: u8,
        /// The kind that the daemon reported.
        kind: Option<ErrorKind>,
        /// Standard output cannot be written.
        is_output: bool,
        /// The connection to the daemon broke.
        is_lost: bool,
        /// A daemon of another version may be the cause.
        may_be_version: bool,
    },
    /// The user answered no to a confirmation.
    Cancelled,
    /// The message was printed already.
    Reported { status: u8 },
    /// Nobody reads standard output any more (`| head`). This counts as success.
    StdoutClosed,
}

/// The line of JSON that reports an error.
#[derive(Serialize)]
struct JsonReport<'a> {
    error: JsonError<'a>,
}

#[derive(Serialize)]
struct JsonError<'a> {
    kind: JsonKind,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// The kind that the daemon reported, or a name for the exit status.
#[derive(Serialize)]
#[serde(untagged)]
enum JsonKind {
    Daemon(ErrorKind),
    Status(&'static str),
}

impl Error {
    /// Creates an error with this exit status.
    #[must_use]
    pub fn new(status: u8, what: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Reason::Message {
            what: what.into(),
            hint: None,
            status,
            kind: None,
            is_output: false,
            is_lost: false,
            may_be_version: false,
        }))
    }

    /// The operation failed: exit status 1.
    #[must_use]
    pub fn failed(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(exit::FAILED, what)
    }

    /// The connection to the daemon broke: exit status 1.
    fn lost_connection() -> Self {
        let mut failure = Self::failed("lost connection to the daemon");
        if let Reason::Message { is_lost, .. } = &mut *failure.0 {
            *is_lost = true;
        }
        failure
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

    /// The user answered no to a confirmation: exit status 6.
    #[must_use]
    pub fn cancelled() -> Self {
        Self(Box::new(Reason::Cancelled))
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
                .with_hint("check the path; a relative path starts at the current directory"),
            io::ErrorKind::PermissionDenied => {
                Self::refused(what).with_hint(format!("check its permissions: ls -ld {name}"))
            }
            _ => Self::failed(what),
        }
    }

    /// The error for a failed write to standard output. A closed pipe ends the program successfully.
    #[must_use]
    pub fn for_stdout(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self(Box::new(Reason::StdoutClosed))
        } else {
            let mut failure = Self::failed(format!("failed to write the output: {}", os_error_text(&error)));
            if let Reason::Message { is_output, .. } = &mut *failure.0 {
                *is_output = true;
            }
            failure
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

    /// Replaces the message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        if let Reason::Message { what, .. } = &mut *self.0 {
            *what = message.into();
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

    /// If standard output cannot be written, puts before the message what was done all the same.
    #[must_use]
    pub fn with_done(mut self, done: Option<&str>) -> Self {
        if let (Reason::Message { what, is_output: true, .. }, Some(done)) = (&mut *self.0, done) {
            *what = format!("{done}, but chorusctl {what}").into();
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
            Reason::Cancelled => "cancelled",
            Reason::Reported { .. } | Reason::StdoutClosed => "",
        }
    }

    /// Returns the exit status.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match *self.0 {
            Reason::Message { status, .. } | Reason::Reported { status } => status,
            Reason::Cancelled => exit::REFUSED,
            Reason::StdoutClosed => exit::SUCCESS,
        }
    }

    /// Returns what the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match &*self.0 {
            Reason::Message { hint, .. } => hint.as_deref(),
            _ => None,
        }
    }

    /// Returns true if the daemon reported this kind.
    #[must_use]
    pub fn is_kind(&self, kind: ErrorKind) -> bool {
        matches!(&*self.0, Reason::Message { kind: Some(reported), .. } if *reported == kind)
    }

    /// Notes that a daemon of another version may be the cause.
    fn with_possible_version(mut self) -> Self {
        if let Reason::Message { may_be_version, .. } = &mut *self.0 {
            *may_be_version = true;
        }
        self
    }

    /// Returns true if a daemon of another version may be the cause.
    pub(crate) fn may_be_of_version(&self) -> bool {
        matches!(*self.0, Reason::Message { may_be_version: true, .. })
    }

    /// Returns true if the connection to the daemon broke.
    #[must_use]
    pub fn is_connection_lost(&self) -> bool {
        matches!(*self.0, Reason::Message { is_lost: true, .. })
    }

    /// Returns true if nobody reads standard output any more.
    #[must_use]
    pub fn is_stdout_closed(&self) -> bool {
        matches!(*self.0, Reason::StdoutClosed)
    }

    /// Prints the `error:` and `hint:` lines; with a JSON format one line of JSON instead.
    pub fn print(&self, notes: Stderr) {
        match &*self.0 {
            Reason::Message { .. } | Reason::Cancelled if notes.is_json() => notes.json_line(&self.json_report(notes)),
            Reason::Message { what, hint, .. } => {
                notes.error(what);
                if let Some(hint) = hint {
                    notes.hint(hint);
                }
            }
            Reason::Cancelled => notes.line("cancelled"),
            Reason::Reported { .. } | Reason::StdoutClosed => {}
        }
    }

    fn json_report(&self, notes: Stderr) -> JsonReport<'_> {
        let (kind, hint) = match &*self.0 {
            Reason::Message { kind, hint, .. } => (*kind, hint.as_deref().map(|hint| notes.name_commands(hint))),
            _ => (None, None),
        };
        let kind = kind.filter(|kind| *kind != ErrorKind::Unknown);
        let kind = kind.map_or_else(|| JsonKind::Status(status_name(self.exit_status())), JsonKind::Daemon);
        JsonReport { error: JsonError { kind, message: self.message(), hint } }
    }
}

/// Returns the name of an exit status in JSON.
fn status_name(status: u8) -> &'static str {
    match status {
        exit::USAGE => "usage",
        exit::NOT_FOUND => "not_found",
        exit::NO_DAEMON => "no_daemon",
        exit::NOTHING_TO_DO => "nothing_to_do",
        exit::REFUSED => "refused",
        exit::CONFLICT => "conflict",
        _ => "failed",
    }
}

/// Returns the field of a request that the daemon does not know.
fn unknown_field(kind: ErrorKind, message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("unknown field `").filter(|_| kind == ErrorKind::InvalidParams)?;
    rest.split_once('`').map(|(field, _)| field)
}

impl From<RpcError> for Error {
    fn from(error: RpcError) -> Self {
        const OLDER: &str = "the daemon may be an older version; restart it: chorusctl daemon restart";
        let (kind, code) = (error.kind(), error.code);
        let unknown_field = unknown_field(kind, &error.message).map(str::to_owned);
        let mut failure = Self::new(kind.exit_status(), error.message);
        if let Reason::Message { kind: reported, .. } = &mut *failure.0 {
            *reported = Some(kind);
        }
        // The fields of a request are not of the user's choice.
        if let Some(field) = unknown_field {
            let what = format!("the daemon does not know the parameter `{field}`");
            return failure.with_message(what).with_hint(OLDER).with_possible_version();
        }
        match (error.data.and_then(|data| data.hint), kind) {
            // The daemon's hint is for people who write clients.
            _ if code == CODE_METHOD_NOT_FOUND => failure.with_hint(OLDER).with_possible_version(),
            (Some(hint), _) => failure.with_hint(hint),
            (None, ErrorKind::Unsupported) => failure.with_hint(OLDER).with_possible_version(),
            (None, ErrorKind::Internal) => failure.with_hint("see the daemon's log: chorusctl daemon logs"),
            (None, _) => failure,
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        const LOGS: &str = "the request may have been carried out; see the daemon's log: chorusctl daemon logs";
        match error {
            CallError::Rpc(error) => error.into(),
            CallError::Malformed(error) => Self::failed(format!("cannot read the daemon's answer: {error}"))
                .with_hint(
                    "chorusctl and chorusd may be different versions; restart the daemon: chorusctl daemon restart",
                )
                .with_possible_version(),
            CallError::Io(error) => match error.kind() {
                _ if RemoteError::find_in(&error).is_some() => {
                    RemoteError::find_in(&error).map_or_else(Self::cancelled, host_select::error_of)
                }
                // The client refused the request before sending anything.
                io::ErrorKind::InvalidInput => Self::usage(format!("the request is too long: {error}"))
                    .with_hint("send it in parts, or import a whole transcript: chorusctl import FILE"),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    Self::failed("the daemon did not answer in time").with_hint(LOGS)
                }
                io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                    Self::lost_connection().with_hint(LOGS)
                }
                _ if ForeignServer::is_cause_of(&error) => connect::untrusted_error(&error),
                _ => {
                    Self::failed(format!("connection to the daemon failed: {}", os_error_text(&error))).with_hint(LOGS)
                }
            },
        }
    }
}

impl From<&clap::Error> for Error {
    fn from(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let mut paragraphs = text.split("\n\n").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        let what = paragraphs.next().unwrap_or_default();
        let tip = paragraphs.find_map(|text| text.strip_prefix("tip: ").map(str::to_owned));
        let failure = Self::usage(what.strip_prefix("error: ").unwrap_or(&what).to_owned());
        failure.with_hint(tip.unwrap_or_else(|| "use --help to show the options".to_owned()))
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
    use chorus_proto::error::{CODE_CHORUS, ErrorData};

    use crate::ui::terminal::ColorWhen;

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
    fn json_has_the_kind_of_the_daemon_or_that_of_the_exit_status() {
        let json =
            |failure: Error| serde_json::to_string(&failure.json_report(Stderr::new(ColorWhen::Never))).expect("JSON");
        let data = Some(ErrorData { kind: ErrorKind::SessionNotFound, hint: None });
        let failure = Error::from(RpcError { code: CODE_CHORUS, message: "no such session".into(), data });
        assert_eq!(json(failure), r#"{"error":{"kind":"session_not_found","message":"no such session"}}"#);
        let failure = Error::no_daemon("none").with_hint("start one");
        assert_eq!(json(failure), r#"{"error":{"kind":"no_daemon","message":"none","hint":"start one"}}"#);
        assert_eq!(json(Error::cancelled()), r#"{"error":{"kind":"refused","message":"cancelled"}}"#);
    }

    #[test]
    fn an_unknown_method_is_a_sign_of_an_older_daemon() {
        let data = Some(ErrorData { kind: ErrorKind::Unsupported, hint: Some("see the methods".into()) });
        let failure = Error::from(RpcError { code: CODE_METHOD_NOT_FOUND, message: "unknown method".into(), data });
        let json = serde_json::to_string(&failure.json_report(Stderr::new(ColorWhen::Never))).expect("JSON");
        assert!(json.contains("restart it: chorusctl daemon restart"), "{json}");
    }

    #[test]
    fn a_broken_connection_never_says_that_no_daemon_runs() {
        let failure = Error::from(CallError::Io(io::ErrorKind::UnexpectedEof.into()));
        assert_eq!(failure.exit_status(), exit::FAILED);
    }
}
