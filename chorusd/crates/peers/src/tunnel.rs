//! One client's connection to another node.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::limits::FINISH_LIMIT;
use crate::node::PeerNode;
use crate::transport::{Connection, TunnelReader, TunnelWriter};

/// Time for a read after a write has failed. The kernel knows at once.
const LAST_READ_LIMIT: Duration = Duration::from_secs(1);

/// Frames to and from another node, for one client's connection. Both sides end it with [`Tunnel::finish`]; dropping it
/// closes the connection, and the other side sees it break.
#[derive(Debug)]
pub struct Tunnel {
    connection: Connection,
    return_to: oneshot::Sender<Connection>,
}

/// The state of a request that was not answered, when its tunnel is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was not carried out: it did not leave this node in whole, or the other node ended the tunnel before it.
    NotRun,
    /// It may have been carried out, in whole or in part.
    Unknown,
}

impl Tunnel {
    /// `return_to` gets the connection once the tunnel has ended on both sides.
    pub(crate) fn new(connection: Connection, return_to: oneshot::Sender<Connection>) -> Self {
        Self { connection, return_to }
    }

    /// The process at the other end.
    #[must_use]
    pub fn peer(&self) -> &PeerNode {
        &self.connection.peer
    }

    /// Both directions, for a task that waits for either.
    pub fn split(&mut self) -> (&mut TunnelReader, &mut TunnelWriter) {
        (&mut self.connection.reader, &mut self.connection.writer)
    }

    /// Returns the next frame as [`TunnelReader::next`] does, and writes what is queued while it waits, so that two sides that
    /// write much do not wait for each other. May be dropped and called again.
    ///
    /// # Errors
    /// Those of both directions.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let (reader, writer) = self.split();
        let failure = tokio::select! {
            biased;
            failure = writer.flush_forever() => failure,
            next = reader.next() => return next,
        };
        // The connection is broken, but what arrived before may say more: that the other side has ended the tunnel.
        match timeout(LAST_READ_LIMIT, reader.next()).await {
            Ok(Ok(next)) => Ok(next),
            _ => Err(failure),
        }
    }

    /// Sends a frame; see [`TunnelWriter::send`]. It does not read: if both sides do that with long frames, they wait for
    /// each other. Feed the frame and call [`Tunnel::next`] then.
    ///
    /// # Errors
    /// The same.
    pub async fn send(&mut self, body: Bytes) -> io::Result<u64> {
        self.connection.writer.send(body).await
    }

    /// Returns the state of the request that was sent as the frame of this number, if it has no answer and there will be
    /// none: a direction has failed, or the other side has ended the tunnel. A node answers all requests that it has
    /// taken from a tunnel before it ends it.
    #[must_use]
    pub fn outcome(&self, number: u64) -> Outcome {
        let Connection { reader, writer, .. } = &self.connection;
        if reader.has_ended() || !writer.queue().may_be_written(number) { Outcome::NotRun } else { Outcome::Unknown }
    }

    /// Ends the tunnel: writes what waits and the end, and discards frames until the other side has ended it, too. Then
    /// the connection may carry another tunnel. Closes the connection if the tunnel is broken, or if the other side takes longer
    /// than 5 s. Returns true if both sides have ended the tunnel.
    pub async fn finish(mut self) -> bool {
        // What a broken tunnel did not take is unknown to the other side, so it must not see an end.
        if self.connection.reader.has_failed() || end(&mut self.connection).await.is_err() {
            return false;
        }
        self.connection.writer.end_tunnel();
        // Nobody waits for it if this node stops.
        let _ = self.return_to.send(self.connection);
        true
    }
}

/// Writes the end and waits for that of the other side. Frames that arrive are read all the time: the other side may wait
/// for that before it reads.
async fn end(Connection { reader, writer, .. }: &mut Connection) -> io::Result<()> {
    let mut write = std::pin::pin!(writer.end());
    let mut discard = std::pin::pin!(async {
        while reader.next().await?.is_some() {}
        io::Result::Ok(())
    });
    let mut has_ended = false;
    loop {
        tokio::select! {
            biased;
            written = &mut write => break written?,
            ended = &mut discard, if !has_ended => {
                ended?;
                has_ended = true;
            }
        }
    }
    if has_ended {
        return Ok(());
    }
    timeout(FINISH_LIMIT, discard).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
