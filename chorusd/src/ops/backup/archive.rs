//! `backup.archive.*`: a backup that is sent while it is made. What the client does not take keeps the making of it waiting, not
//! the home: by then nothing is locked.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::ErrorKind;
use chorus_proto::methods::backup::{
    ArchiveBeginParams, ArchiveBeginResult, ArchiveReadParams, ArchiveReadResult, Summary,
};
use tokio::sync::{Mutex, mpsc};

use crate::backup::{Archive, Identity};
use crate::failure::{Failure, Result};
use crate::ops::{Ops, blocking};
use crate::store::{CATALOG, DB, JOURNAL, damage};

/// Bytes in one answer, before they are base64.
const PIECE: usize = 1 << 20;

/// Pieces that wait for the client.
const WAITING: usize = 2;

enum Piece {
    Data(Vec<u8>),
    End(Box<Result<Summary>>),
}

/// Archives on their way, by connection and number.
#[derive(Default)]
pub struct Archives(SyncMutex<Inner>);

#[derive(Default)]
struct Inner {
    next: u64,
    open: HashMap<(u64, u64), Arc<Mutex<mpsc::Receiver<Piece>>>>,
}

impl std::fmt::Debug for Archives {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archives").finish_non_exhaustive()
    }
}

impl Archives {
    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, connection: u64, pieces: mpsc::Receiver<Piece>) -> u64 {
        let mut inner = self.inner();
        inner.next += 1;
        let number = inner.next;
        inner.open.insert((connection, number), Arc::new(Mutex::new(pieces)));
        number
    }

    /// Drops the archives of a connection; what makes them ends at its next piece.
    pub fn close(&self, connection: u64) {
        self.inner().open.retain(|(of, _), _| *of != connection);
    }
}

/// Starts an archive.
///
/// # Errors
/// `busy`.
pub async fn begin(ops: &Arc<Ops>, connection: u64, _: ArchiveBeginParams) -> Result<ArchiveBeginResult> {
    let alone = ops.backups.begin()?;
    let (pieces, taken) = mpsc::channel(WAITING);
    let archive = ops.backups.archives.open(connection, taken);
    let ops = ops.clone();
    let size = PIECE.min(ops.config.max_frame / 2);
    tokio::spawn(async move {
        let _alone = alone;
        let out = Pieces { to: pieces.clone(), size, bytes: Vec::with_capacity(size) };
        let made = make(&ops, Archive::new(out)).await;
        // A client that went away knows that the archive is not complete.
        let _ = pieces.send(Piece::End(Box::new(made))).await;
    });
    Ok(ArchiveBeginResult { archive })
}

/// An archive cannot be checked once it went out, so the databases are looked over first.
async fn make(ops: &Ops, archive: Archive<Pieces>) -> Result<Summary> {
    let home = ops.home.clone();
    let look = move || {
        for name in [JOURNAL, CATALOG] {
            if let Some(first) = damage::problems_of_open(&home.join(DB).join(name), false).first() {
                let what = format!("{DB}/{name} is damaged: {first}; there is no archive");
                return Err(Failure::new(ErrorKind::StorageFailed, what).hint("chorusctl doctor"));
            }
        }
        Identity::of(&home)
    };
    let of = blocking(look).await?;
    super::make(ops, of, archive, Box::new(|_| ())).await
}

/// Answers the next bytes; the last answer has the summary.
///
/// # Errors
/// `not_found`, or why the archive cannot be completed.
pub async fn read(ops: &Ops, connection: u64, params: ArchiveReadParams) -> Result<ArchiveReadResult> {
    let key = (connection, params.archive);
    let pieces = ops.backups.archives.inner().open.get(&key).cloned().ok_or_else(|| unknown(params.archive))?;
    let piece = pieces.lock().await.recv().await;
    match piece {
        Some(Piece::Data(bytes)) => Ok(ArchiveReadResult { data_base64: STANDARD.encode(bytes), summary: None }),
        Some(Piece::End(made)) => {
            ops.backups.archives.inner().open.remove(&key);
            Ok(ArchiveReadResult { data_base64: String::new(), summary: Some((*made)?) })
        }
        None => Err(unknown(params.archive)),
    }
}

fn unknown(number: u64) -> Failure {
    Failure::new(ErrorKind::NotFound, format!("there is no archive {number} on this connection"))
        .hint("begin it on the same connection, and stop at the summary")
}

/// Cuts the archive into pieces and waits until they are taken.
struct Pieces {
    to: mpsc::Sender<Piece>,
    size: usize,
    bytes: Vec<u8>,
}

impl Pieces {
    fn send(&mut self) -> io::Result<()> {
        let bytes = std::mem::replace(&mut self.bytes, Vec::with_capacity(self.size));
        self.to.blocking_send(Piece::Data(bytes)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.size - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..count]);
        if self.bytes.len() == self.size {
            self.send()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() { Ok(()) } else { self.send() }
    }
}
