//! Unnamed files of a connection: an upload collects its bytes in one until the commit, and a download waits in one
//! until it is fetched.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_proto::ErrorKind;
use chorus_proto::methods::import::ImportFormat;
use chorus_tool_files::ConversationInfo;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// A file with its description.
#[derive(Debug)]
pub struct Transfer<T> {
    pub description: T,
    pub file: File,
    /// Bytes that were uploaded.
    pub received: u64,
}

/// A transcript that is being uploaded.
#[derive(Debug)]
pub struct TranscriptUpload {
    /// `None`: the agent that holds the conversations of the program that wrote the transcript.
    pub agent: Option<Uuid>,
    pub format: ImportFormat,
    pub file: String,
    pub info: ConversationInfo,
    pub written_at: Option<Timestamp>,
}

/// The transfers of all kinds.
#[derive(Debug, Default)]
pub struct AllTransfers {
    /// Transcripts that are being imported.
    pub transcript_uploads: Transfers<TranscriptUpload>,
    /// Agents that are being imported.
    pub agent_uploads: Transfers<()>,
    /// Agents that are being exported.
    pub agent_downloads: Transfers<()>,
}

impl AllTransfers {
    /// For a daemon that shares agents with others: a client may have transfers on several of them, whose numbers must
    /// not be equal.
    #[must_use]
    pub fn of_process(node: &str, boot: i64) -> Self {
        let digest = Sha256::digest(format!("{node}/{boot}"));
        let first = digest.iter().take(4).fold(0, |number, byte| number << 8 | u64::from(*byte)) << 20;
        let all = Self::default();
        all.transcript_uploads.0.lock().next = first;
        all.agent_uploads.0.lock().next = first;
        all.agent_downloads.0.lock().next = first;
        all
    }

    /// Drops the transfers of a connection that has ended.
    pub fn close_connection(&self, connection: u64) {
        self.transcript_uploads.close_connection(connection);
        self.agent_uploads.close_connection(connection);
        self.agent_downloads.close_connection(connection);
    }
}

/// All transfers of one kind, by connection and number.
#[derive(Debug)]
pub struct Transfers<T>(Mutex<TransfersState<T>>);

/// The limit on open transfers of one connection.
const MAX_OPEN_PER_CONNECTION: usize = 16;

#[derive(Debug)]
struct TransfersState<T> {
    next: u64,
    open: HashMap<(u64, u64), Arc<Mutex<Transfer<T>>>>,
}

impl<T> Default for Transfers<T> {
    fn default() -> Self {
        Self(Mutex::new(TransfersState { next: 0, open: HashMap::new() }))
    }
}

impl<T> Transfers<T> {
    /// Opens a transfer and returns its number; fails with `busy` if the connection has too many open.
    pub fn open(&self, connection: u64, of: T, file: File) -> Result<u64> {
        let mut inner = self.0.lock();
        if inner.open.keys().filter(|(of, _)| *of == connection).count() >= MAX_OPEN_PER_CONNECTION {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("this connection already has {MAX_OPEN_PER_CONNECTION} open transfers"),
            )
            .hint("commit one first, or close the connection"));
        }
        inner.next += 1;
        let number = inner.next;
        inner.open.insert((connection, number), Arc::new(Mutex::new(Transfer { description: of, file, received: 0 })));
        Ok(number)
    }

    /// Runs `act` on a transfer. May block. Fails with `not_found`, or if `act` fails.
    pub fn with_transfer<R>(
        &self,
        connection: u64,
        number: u64,
        act: impl FnOnce(&mut Transfer<T>) -> Result<R>,
    ) -> Result<R> {
        let spool = self.0.lock().open.get(&(connection, number)).cloned().ok_or_else(|| unknown_transfer(number))?;
        let mut spool = spool.lock();
        act(&mut spool)
    }

    /// Appends bytes and returns the total received. Blocks.
    pub fn append(&self, connection: u64, number: u64, bytes: &[u8]) -> Result<u64> {
        self.with_transfer(connection, number, |spool| {
            spool.file.write_all(bytes).map_err(|e| Error::io("cannot store the import", &e))?;
            spool.received += bytes.len() as u64;
            Ok(spool.received)
        })
    }

    /// Removes a transfer and returns it.
    ///
    /// # Errors
    /// `not_found`, or `busy` while bytes are being appended.
    pub fn remove(&self, connection: u64, number: u64) -> Result<Transfer<T>> {
        let spool = self.0.lock().open.remove(&(connection, number)).ok_or_else(|| unknown_transfer(number))?;
        Arc::into_inner(spool).map(|spool| spool.into_inner()).ok_or_else(|| {
            Error::new(ErrorKind::Busy, "a previous chunk is still being added").hint("wait for its reply")
        })
    }

    /// Drops all transfers of a connection.
    pub fn close_connection(&self, connection: u64) {
        self.0.lock().open.retain(|(of, _), _| *of != connection);
    }
}

fn unknown_transfer(number: u64) -> Error {
    Error::new(ErrorKind::NotFound, format!("no import or export {number} on this connection"))
        .hint("start it on the same connection")
}
