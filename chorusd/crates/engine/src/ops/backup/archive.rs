//! `backup.archive.*`: sends a backup to the client while it is made. A client that reads slowly delays the backup, but
//! not the home, because no lock is held while chunks are sent.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex as SyncMutex;
use chorus_proto::ErrorKind;
use chorus_proto::methods::backup::{
    ArchiveBeginParams, ArchiveBeginResult, ArchiveReadParams, ArchiveReadResult, Summary,
};
use chorus_runtime::run_blocking;
use chorus_store::{CATALOG_FILE, DB_DIR, JOURNAL_FILE, integrity};
use tokio::sync::{Mutex, mpsc};

use crate::backup::{ArchiveSink, HomeIdentity};
use crate::ops::backup::Backups;

/// Bytes per reply, before base64 encoding.
const CHUNK_BYTES: usize = 1 << 20;

/// The limit on chunks that wait for the client.
const MAX_QUEUED_CHUNKS: usize = 2;

enum Chunk {
    Data(Vec<u8>),
    End(Box<Result<Summary>>),
}

/// Archives that are being sent, by connection and number.
#[derive(Default)]
pub struct ArchiveStreams(SyncMutex<StreamsState>);

#[derive(Default)]
struct StreamsState {
    next: u64,
    open: HashMap<(u64, u64), Arc<Mutex<mpsc::Receiver<Chunk>>>>,
}

impl std::fmt::Debug for ArchiveStreams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archives").finish_non_exhaustive()
    }
}

impl ArchiveStreams {
    fn open(&self, connection: u64, pieces: mpsc::Receiver<Chunk>) -> u64 {
        let mut inner = self.0.lock();
        inner.next += 1;
        let number = inner.next;
        inner.open.insert((connection, number), Arc::new(Mutex::new(pieces)));
        number
    }

    /// Drops the archives of a connection; their backups end at the next chunk.
    pub fn close_connection(&self, connection: u64) {
        self.0.lock().open.retain(|(of, _), _| *of != connection);
    }
}

/// Starts an archive.
pub async fn begin(backups: &Arc<Backups>, connection: u64, _: ArchiveBeginParams) -> Result<ArchiveBeginResult> {
    let alone = backups.start()?;
    let (sender, receiver) = mpsc::channel(MAX_QUEUED_CHUNKS);
    let archive = backups.archives.open(connection, receiver);
    let backups = backups.clone();
    let size = CHUNK_BYTES.min(backups.config.current().max_frame / 2);
    chorus_runtime::spawn(async move {
        let _alone = alone;
        let out = ChunkWriter { sender: sender.clone(), chunk_bytes: size, bytes: Vec::with_capacity(size) };
        let made = make_archive(&backups, ArchiveSink::new(out)).await;
        // A client that has disconnected knows that its archive is incomplete.
        let _ = sender.send(Chunk::End(Box::new(made))).await;
    });
    Ok(ArchiveBeginResult { archive })
}

/// Makes the archive. It cannot be withdrawn once it was sent, so the databases are checked first.
async fn make_archive(backups: &Backups, archive: ArchiveSink<ChunkWriter>) -> Result<Summary> {
    let home = backups.agents.home.clone();
    let look = move || {
        for name in [JOURNAL_FILE, CATALOG_FILE] {
            if let Some(first) = integrity::find_problems_while_open(&home.join(DB_DIR).join(name), false).first() {
                let what = format!("{DB_DIR}/{name} is damaged: {first}; no archive was created");
                return Err(Error::new(ErrorKind::StorageFailed, what).hint("chorusctl doctor"));
            }
        }
        HomeIdentity::load(&home)
    };
    let of = run_blocking(look).await?;
    super::make_backup(backups, of, archive, Box::new(|_| ())).await
}

/// Returns the next bytes; the last reply has the summary.
///
/// # Errors
/// `not_found`, or the reason why the archive cannot be completed.
pub async fn read(backups: &Backups, connection: u64, params: ArchiveReadParams) -> Result<ArchiveReadResult> {
    let key = (connection, params.archive);
    let pieces = backups.archives.0.lock().open.get(&key).cloned().ok_or_else(|| unknown_archive(params.archive))?;
    let piece = pieces.lock().await.recv().await;
    match piece {
        Some(Chunk::Data(bytes)) => Ok(ArchiveReadResult { data_base64: STANDARD.encode(bytes), summary: None }),
        Some(Chunk::End(made)) => {
            backups.archives.0.lock().open.remove(&key);
            Ok(ArchiveReadResult { data_base64: String::new(), summary: Some((*made)?) })
        }
        None => Err(unknown_archive(params.archive)),
    }
}

fn unknown_archive(number: u64) -> Error {
    Error::new(ErrorKind::NotFound, format!("no archive {number} on this connection"))
        .hint("start it on the same connection, and stop after the summary")
}

/// Splits the archive into chunks and waits until the client reads them.
struct ChunkWriter {
    sender: mpsc::Sender<Chunk>,
    chunk_bytes: usize,
    bytes: Vec<u8>,
}

impl ChunkWriter {
    fn send_chunk(&mut self) -> io::Result<()> {
        let bytes = std::mem::replace(&mut self.bytes, Vec::with_capacity(self.chunk_bytes));
        self.sender.blocking_send(Chunk::Data(bytes)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.chunk_bytes - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..count]);
        if self.bytes.len() == self.chunk_bytes {
            self.send_chunk()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() { Ok(()) } else { self.send_chunk() }
    }
}
