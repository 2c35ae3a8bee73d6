//! The URL of the database from a file or an environment variable, as other secrets are given.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;

use crate::connection::DatabaseUrl;

/// Limit of bytes of a file with a URL.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Bits of a mode with which others may read or write a file.
const OTHERS: u32 = 0o077;

impl DatabaseUrl {
    /// Reads the URL from a file that only its owner may read, who is the user of this process or root: blocks.
    ///
    /// # Errors
    /// Fails if the file cannot be read, belongs to another user, others may read it, or its text is not a URL. The error
    /// does not repeat the text.
    pub fn from_file(path: &Path) -> Result<Self> {
        let failed = |what: String, hint: String| {
            let what = format!("cannot use {} as the URL of PostgreSQL: {what}", path.display());
            Error::new(ErrorKind::InvalidConfig, what).hint(hint)
        };
        let unreadable = |e: std::io::Error| failed(e.to_string(), "check the path and the permissions".to_owned());
        // Opening a pipe could block.
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(failed("it is not a file".to_owned(), "name a file that has the URL".to_owned()));
        }
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let own = rustix::process::geteuid().as_raw();
        if metadata.uid() != own && metadata.uid() != 0 {
            let what = format!("it belongs to the user {}, not to {own}", metadata.uid());
            return Err(failed(what, format!("chown {own} {}", path.display())));
        }
        if metadata.mode() & OTHERS != 0 {
            let what = format!("its mode is {:04o}: other users may have access", metadata.mode() & 0o7777);
            return Err(failed(what, format!("chmod 600 {}", path.display())));
        }
        let mut text = String::new();
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(unreadable)?;
        Self::parse(&text)
    }

    /// Reads the URL from an environment variable.
    ///
    /// # Errors
    /// Fails if the variable is not set, or its text is not a URL. The error does not repeat the text.
    pub fn from_env(variable: &str) -> Result<Self> {
        let text = std::env::var(variable).map_err(|_| {
            Error::new(ErrorKind::InvalidConfig, format!("{variable} is not set in the daemon's environment"))
                .hint(format!("set {variable} to the URL of PostgreSQL, and restart the daemon"))
        })?;
        Self::parse(&text)
    }
}
