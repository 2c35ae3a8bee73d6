//! Errors of requests, in words.

use chorus_proto::{CallError, ErrorKind};

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    pub hint: Option<String>,
    /// `None` if the daemon did not answer, or not in a way that is understood.
    pub kind: Option<ErrorKind>,
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Rpc(error) => {
                let kind = Some(error.kind());
                Self { message: error.message, hint: error.data.and_then(|data| data.hint), kind }
            }
            CallError::Io(_) => Self { message: "lost the connection to the daemon".into(), hint: None, kind: None },
            CallError::Malformed(error) => Self {
                message: format!("invalid reply from the daemon: {error}"),
                hint: Some("chorusd may be of another release: chorusctl daemon restart".into()),
                kind: None,
            },
        }
    }
}
