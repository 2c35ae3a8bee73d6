//! Errors: one line that says what happened, one that says what to do.

use std::fmt;

pub type Result<T> = std::result::Result<T, Error>;

/// Why a chore was not done.
#[derive(Debug)]
pub struct Error {
    message: String,
    hint: Option<String>,
}

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Adds what to do about it.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns an error about a file that cannot be read or written.
    pub fn file(verb: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::new(format!("cannot {verb} {}: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        self.hint.iter().try_for_each(|hint| writeln!(f, "hint: {hint}"))
    }
}
