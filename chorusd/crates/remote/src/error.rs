//! Errors of a connection to another machine.

use std::fmt;
use std::io;

/// The daemon of a host cannot be reached. It is the source of an [`io::Error`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteError {
    /// Exit status of a command that fails with it.
    pub status: u8,
    pub message: String,
    pub hint: String,
    /// The line may work later: the network or the other machine is not there at the moment.
    pub is_temporary: bool,
}

impl RemoteError {
    pub(crate) fn new(status: u8, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { status, message: message.into(), hint: hint.into(), is_temporary: false }
    }

    pub(crate) fn temporary(self) -> Self {
        Self { is_temporary: true, ..self }
    }

    /// Returns the [`RemoteError`] in `error`.
    #[must_use]
    pub fn find_in(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RemoteError {}

impl From<RemoteError> for io::Error {
    fn from(error: RemoteError) -> Self {
        Self::other(error)
    }
}
