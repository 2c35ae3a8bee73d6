//! Conversations in the databases of other programs. The daemon's program, which has SQLite, reads them.

use std::fs::File;
use std::io::{self, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde::Deserialize;

use crate::connect::{daemon_program, spawn_error};
use crate::error::{Error, os_error_text};

/// The first bytes of every SQLite database.
const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// A conversation of a database.
#[derive(Debug, Deserialize)]
pub(super) struct ConversationEntry {
    pub id: String,
}

/// Returns whether a file is a database.
pub(super) fn is_database(file: &str) -> bool {
    let mut start = [0; SQLITE_MAGIC.len()];
    file != "-"
        && File::open(file).and_then(|mut opened| opened.read_exact(&mut start)).is_ok()
        && start == *SQLITE_MAGIC
}

/// Lists the conversations of a database, the oldest first.
pub(super) fn list(database: &str) -> Result<Vec<ConversationEntry>, Error> {
    let mut text = String::new();
    let mut reader = start(&[database])?;
    reader.read_to_string(&mut text).map_err(|error| Error::usage(reader.failure(&error)))?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| Error::failed(error.to_string()))).collect()
}

/// Opens a conversation of a database as the document that its program exports.
pub(super) fn open(database: &str, conversation: &str) -> Result<ConversationReader, Error> {
    start(&[database, "--conversation", conversation])
}

fn start(arguments: &[&str]) -> Result<ConversationReader, Error> {
    let program = daemon_program();
    let mut command = Command::new(&program);
    command.arg("read-database").args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| spawn_error(&program, &error))?;
    let output = child.stdout.take();
    Ok(ConversationReader { child, output, failure: None })
}

/// The output of the program that reads a database. Its end is an error if the program failed.
#[derive(Debug)]
pub(super) struct ConversationReader {
    child: Child,
    output: Option<ChildStdout>,
    /// The error that the program printed.
    failure: Option<String>,
}

impl ConversationReader {
    /// Returns the error of the program, otherwise that of reading its output.
    fn failure(&self, error: &io::Error) -> String {
        self.failure.clone().unwrap_or_else(|| format!("failed to read: {}", os_error_text(error)))
    }

    fn wait(&mut self) -> io::Result<()> {
        let mut message = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            errors.read_to_string(&mut message)?;
        }
        if self.child.wait()?.success() {
            return Ok(());
        }
        let line = message.lines().next().unwrap_or("the database cannot be read");
        let failure = line.strip_prefix("error: ").unwrap_or(line).to_owned();
        self.failure = Some(failure.clone());
        Err(io::Error::other(failure))
    }
}

impl Read for ConversationReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(output) = &mut self.output else { return Ok(0) };
        let count = output.read(buffer)?;
        if count == 0 && !buffer.is_empty() {
            self.output = None;
            self.wait()?;
        }
        Ok(count)
    }
}

impl Drop for ConversationReader {
    fn drop(&mut self) {
        // It ends by itself when nobody reads what it writes.
        self.output = None;
        let _ = self.child.wait();
    }
}
