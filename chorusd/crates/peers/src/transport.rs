//! The two directions of a TLS connection, as frames.

use std::io;
use std::pin::Pin;
use std::task::ready;

use bytes::{Bytes, BytesMut};
use chorus_proto::frame_codec::FrameCodec;
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;
use tokio_util::codec::Decoder as _;
use tokio_util::sync::CancellationToken;

use crate::frame_queue::{FrameQueue, Rejected};
use crate::hello;
use crate::limits::MAX_CONTROL_BYTES;
use crate::node::PeerNode;

/// Bytes that are reserved for a read between two frames.
const READ_BYTES: usize = 4096;

/// A connection after both hellos.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) reader: TunnelReader,
    pub(crate) writer: TunnelWriter,
    pub(crate) peer: PeerNode,
}

/// Reads the frames of a tunnel.
#[derive(Debug)]
pub struct TunnelReader {
    io: ReadHalf<TlsStream<TcpStream>>,
    received: BytesMut,
    limit: usize,
    /// The other side has ended the tunnel.
    has_ended: bool,
    /// The frames have come to an end before the tunnel did.
    has_failed: bool,
    cut: CancellationToken,
}

/// Writes the frames of a tunnel.
#[derive(Debug)]
pub struct TunnelWriter {
    io: WriteHalf<TlsStream<TcpStream>>,
    queue: FrameQueue,
    limit: usize,
    /// The end of the tunnel was queued.
    has_ended: bool,
    cut: CancellationToken,
}

/// Splits a TLS connection, for frames of at most `limit` bytes. Both halves fail once `cut` is cancelled.
pub(crate) fn split(tls: TlsStream<TcpStream>, limit: usize, cut: &CancellationToken) -> (TunnelReader, TunnelWriter) {
    let (read, write) = tokio::io::split(tls);
    let received = BytesMut::new();
    let reader = TunnelReader { io: read, received, limit, has_ended: false, has_failed: false, cut: cut.clone() };
    (reader, TunnelWriter { io: write, queue: FrameQueue::new(limit), limit, has_ended: false, cut: cut.clone() })
}

impl TunnelReader {
    /// Returns the next frame of the tunnel; `None` if the other side has ended it. May be dropped and called again.
    ///
    /// # Errors
    /// `InvalidData` for a frame that is too long, `UnexpectedEof` if the connection ended and the tunnel did not,
    /// `ConnectionAborted` if this node gave the connection up, and those of the socket. The tunnel cannot continue.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if self.has_ended {
            return Ok(None);
        }
        let body = self.frame(self.limit).await.inspect_err(|_| self.has_failed = true)?;
        self.has_ended = body.is_empty();
        Ok((!self.has_ended).then_some(body))
    }

    /// True if the other side has ended the tunnel.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// True if the frames have come to an end before the tunnel did.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns the next frame that belongs to no tunnel. It is empty if the other side wants no further tunnel.
    pub(crate) async fn next_control(&mut self) -> io::Result<Bytes> {
        self.frame(MAX_CONTROL_BYTES).await
    }

    pub(crate) fn begin_tunnel(&mut self) {
        self.has_ended = false;
    }

    /// Reads and drops what arrives until the connection ends.
    pub(crate) async fn discard(&mut self) {
        let _ = tokio::io::copy(&mut self.io, &mut tokio::io::sink()).await;
    }

    async fn frame(&mut self, limit: usize) -> io::Result<Bytes> {
        loop {
            if let Some(body) = FrameCodec::new(limit).decode(&mut self.received)? {
                return Ok(body);
            }
            if self.received.is_empty() {
                // Free the buffer: a connection that waits needs no memory.
                self.received = BytesMut::new();
            }
            if self.received.capacity() == self.received.len() {
                self.received.reserve(READ_BYTES);
            }
            let read = tokio::select! {
                biased;
                () = self.cut.cancelled() => return Err(io::ErrorKind::ConnectionAborted.into()),
                read = self.io.read_buf(&mut self.received) => read?,
            };
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl TunnelWriter {
    /// Returns the queue, for those who have frames to write.
    #[must_use]
    pub fn queue(&self) -> FrameQueue {
        self.queue.clone()
    }

    /// Queues a frame, writes what waits if it is much, and returns the number of the frame. [`TunnelWriter::flush`] writes the rest.
    /// If it is dropped before it returns, the frame may be missing; a part of it is never written.
    ///
    /// # Errors
    /// `InvalidInput` for an empty body or one that is too long, and those of [`TunnelWriter::flush`].
    pub async fn feed(&mut self, mut body: Bytes) -> io::Result<u64> {
        loop {
            match self.queue.offer(body) {
                Ok(number) => return Ok(number),
                Err(Rejected::Full(returned)) => {
                    body = returned;
                    self.flush().await?;
                }
                Err(Rejected::Closed) => return Err(io::ErrorKind::BrokenPipe.into()),
                Err(rejected) => return Err(io::Error::new(io::ErrorKind::InvalidInput, rejected)),
            }
        }
    }

    /// Queues a frame and writes all that waits. Returns the number of the frame.
    ///
    /// # Errors
    /// Those of [`TunnelWriter::feed`].
    pub async fn send(&mut self, body: Bytes) -> io::Result<u64> {
        let number = self.feed(body).await?;
        self.flush().await?;
        Ok(number)
    }

    /// Writes all that waits. If it is dropped before it returns, it has to be called again.
    ///
    /// # Errors
    /// `ConnectionAborted` if this node gave the connection up, and those of the socket.
    pub async fn flush(&mut self) -> io::Result<()> {
        let Self { io, queue, cut, .. } = self;
        let write = async {
            while std::future::poll_fn(|cx| {
                let polled = queue.write_with(
                    |slices| Pin::new(&mut *io).poll_write_vectored(cx, slices),
                    |polled| match polled {
                        std::task::Poll::Ready(Ok(written)) => *written,
                        _ => 0,
                    },
                );
                let Some(polled) = polled else { return std::task::Poll::Ready(Ok(false)) };
                match ready!(polled) {
                    Ok(0) => std::task::Poll::Ready(Err(io::Error::from(io::ErrorKind::WriteZero))),
                    other => std::task::Poll::Ready(other.map(|_| true)),
                }
            })
            .await?
            {}
            io.flush().await
        };
        tokio::select! {
            biased;
            () = cut.cancelled() => Err(io::ErrorKind::ConnectionAborted.into()),
            written = write => written,
        }
    }

    /// Writes what waits, and then what is queued later, until that fails. May be dropped and called again.
    pub async fn flush_forever(&mut self) -> io::Error {
        loop {
            if let Err(failure) = self.flush().await {
                return failure;
            }
            self.queue.wait_until_queued().await;
        }
    }

    /// Ends this direction of the tunnel: refuses further frames, and writes what waits. The other side still answers what it
    /// was asked. May be called again.
    ///
    /// # Errors
    /// Those of [`TunnelWriter::flush`].
    pub async fn end(&mut self) -> io::Result<()> {
        if !self.has_ended {
            self.has_ended = true;
            self.queue.close();
            self.queue.push_control(Bytes::new());
        }
        self.flush().await
    }

    /// Writes a frame that belongs to no tunnel.
    pub(crate) async fn send_control(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.queue.push_control(hello::encode(value)?);
        self.flush().await
    }

    /// Queues the frame that opens a tunnel. It is written together with the first request.
    pub(crate) fn begin_tunnel(&mut self, open: Bytes) {
        self.queue.push_control(open);
    }

    /// Discards what was counted in a tunnel that has ended.
    pub(crate) fn end_tunnel(&mut self) {
        self.queue = FrameQueue::new(self.limit);
        self.has_ended = false;
    }

    /// Ends the direction in an orderly way.
    pub(crate) async fn shut_down(&mut self) {
        let _ = self.io.shutdown().await;
    }
}
