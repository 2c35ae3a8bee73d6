//! Rows of one table in the order of their key, read ahead by a few batches.

use chorus_base::error::Result;
use tokio::sync::mpsc;

use crate::value::{Row, Value};

/// Rows of a batch that is read.
const BATCH_ROWS: usize = 512;

/// Bytes from which a batch is full.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// Batches that are read ahead.
const BATCHES_AHEAD: usize = 2;

/// The rows of a table, as they were when the reading started.
#[derive(Debug)]
pub(crate) struct RowStream {
    batches: mpsc::Receiver<Result<Vec<Row>>>,
    ready: std::vec::IntoIter<Row>,
}

/// Collects rows for a [`RowStream`].
#[derive(Debug)]
pub(crate) struct RowSender {
    batches: mpsc::Sender<Result<Vec<Row>>>,
    rows: Vec<Row>,
    bytes: usize,
}

/// Nobody reads the rows any more.
#[derive(Debug)]
pub(crate) struct Closed;

/// Returns both ends of a stream.
pub(crate) fn channel() -> (RowSender, RowStream) {
    let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
    let sender = RowSender { batches: sender, rows: Vec::new(), bytes: 0 };
    (sender, RowStream { batches: receiver, ready: Vec::new().into_iter() })
}

impl RowStream {
    /// Returns the next row.
    ///
    /// # Errors
    /// Fails if the database cannot be read.
    pub(crate) async fn next(&mut self) -> Result<Option<Row>> {
        loop {
            if let Some(row) = self.ready.next() {
                return Ok(Some(row));
            }
            match self.batches.recv().await {
                Some(batch) => self.ready = batch?.into_iter(),
                None => return Ok(None),
            }
        }
    }
}

impl RowSender {
    /// Adds a row. Returns the rows to send if there are enough.
    fn add(&mut self, row: Row) -> Option<Vec<Row>> {
        self.bytes += row.iter().map(Value::size).sum::<usize>();
        self.rows.push(row);
        (self.rows.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES).then(|| self.take())
    }

    fn take(&mut self) -> Vec<Row> {
        self.bytes = 0;
        std::mem::take(&mut self.rows)
    }

    pub(crate) async fn send(&mut self, row: Row) -> Result<(), Closed> {
        match self.add(row) {
            Some(batch) => self.batches.send(Ok(batch)).await.map_err(|_| Closed),
            None => Ok(()),
        }
    }

    /// Sends what is left, or the error that ended the reading.
    pub(crate) async fn finish(mut self, outcome: Result<()>) {
        let rest = self.take();
        // If nobody reads the rows any more, nothing is lost.
        let _ = self.batches.send(outcome.map(|()| rest)).await;
    }

    pub(crate) fn send_blocking(&mut self, row: Row) -> Result<(), Closed> {
        match self.add(row) {
            Some(batch) => self.batches.blocking_send(Ok(batch)).map_err(|_| Closed),
            None => Ok(()),
        }
    }

    pub(crate) fn finish_blocking(mut self, outcome: Result<()>) {
        let rest = self.take();
        let _ = self.batches.blocking_send(outcome.map(|()| rest));
    }
}
