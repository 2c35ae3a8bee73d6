//! Transcripts on their way in: each waits in an unnamed file until its commit.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use chorus_proto::ErrorKind;
use chorus_proto::methods::import::ImportFormat;
use uuid::Uuid;

use crate::failure::{Failure, Result};

/// A transcript that is being sent.
#[derive(Debug)]
pub struct Upload {
    pub agent: Uuid,
    pub format: ImportFormat,
    pub file: String,
    pub spool: File,
    pub received: u64,
}

/// All of them, by connection and number.
#[derive(Debug, Default)]
pub struct Uploads(Mutex<Inner>);

/// Uploads of one connection that may be open at once.
const MAX_OPEN: usize = 16;

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    open: HashMap<(u64, u64), Arc<Mutex<Upload>>>,
}

impl Uploads {
    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens one; answers its number.
    ///
    /// # Errors
    /// `busy` where the connection has too many open.
    pub fn open(&self, connection: u64, upload: Upload) -> Result<u64> {
        let mut inner = self.inner();
        if inner.open.keys().filter(|(of, _)| *of == connection).count() >= MAX_OPEN {
            return Err(Failure::new(ErrorKind::Busy, format!("{MAX_OPEN} imports are open on this connection"))
                .hint("commit one first"));
        }
        inner.next += 1;
        let number = inner.next;
        inner.open.insert((connection, number), Arc::new(Mutex::new(upload)));
        Ok(number)
    }

    /// Adds bytes; answers how many have come. Blocks.
    ///
    /// # Errors
    /// `not_found`, or what the disk says.
    pub fn add(&self, connection: u64, number: u64, bytes: &[u8]) -> Result<u64> {
        let upload = self.inner().open.get(&(connection, number)).cloned().ok_or_else(|| unknown(number))?;
        let mut upload = upload.lock().unwrap_or_else(PoisonError::into_inner);
        upload.spool.write_all(bytes).map_err(|e| Failure::io("cannot keep what is imported", &e))?;
        upload.received += bytes.len() as u64;
        Ok(upload.received)
    }

    /// Takes one out.
    ///
    /// # Errors
    /// `not_found`, or `busy` while bytes are being added.
    pub fn take(&self, connection: u64, number: u64) -> Result<Upload> {
        let upload = self.inner().open.remove(&(connection, number)).ok_or_else(|| unknown(number))?;
        Arc::into_inner(upload)
            .map(|upload| upload.into_inner().unwrap_or_else(PoisonError::into_inner))
            .ok_or_else(|| Failure::new(ErrorKind::Busy, "bytes are still being added").hint("wait for their answer"))
    }

    /// Forgets what a connection left behind.
    pub fn close(&self, connection: u64) {
        self.inner().open.retain(|(of, _), _| *of != connection);
    }
}

fn unknown(number: u64) -> Failure {
    Failure::new(ErrorKind::NotFound, format!("there is no import {number} on this connection"))
        .hint("begin it with session.import.begin on the same connection")
}
