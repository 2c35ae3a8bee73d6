//! Writes frames to one client. [`ClientWriter::offer`] tries a non-blocking write on the caller's thread; whatever the
//! socket does not accept is queued and flushed by the connection's task. This avoids waking that task for each
//! streamed token, which would cost more than everything else about a token.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::sync::Mutex;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::reply::Frame;

/// A client that does not accept a frame within this time is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The limit on frames that one system call writes.
const MAX_FRAMES_PER_CALL: usize = 64;

/// The limit on bytes that [`ClientWriter::enqueue_for_flush`] lets wait for others.
const MAX_UNFLUSHED_BYTES: usize = 64 << 10;

/// The polling interval for a writable socket when no descriptor is left to wait with.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Writes to one client. Frames keep their order, whichever task or thread writes them.
#[derive(Debug)]
pub(super) struct ClientWriter {
    state: Mutex<WriterState>,
    queued: Notify,
}

#[derive(Debug)]
struct WriterState {
    /// `None` when the connection has ended.
    socket: Option<Arc<OwnedFd>>,
    queue: VecDeque<Frame>,
    /// Number of bytes of the first queued frame that were written.
    first_written: usize,
}

/// The socket accepts nothing more now.
struct SocketFull {
    socket: Arc<OwnedFd>,
    /// True if the last attempt completed a frame.
    completed_frame: bool,
}

impl ClientWriter {
    /// Creates a writer for a non-blocking `socket`.
    pub(super) fn new(socket: Arc<OwnedFd>) -> Self {
        let out = WriterState { socket: Some(socket), queue: VecDeque::new(), first_written: 0 };
        Self { state: Mutex::new(out), queued: Notify::new() }
    }

    /// Writes a frame if nothing is queued before it and the socket accepts at least a part of it; the rest is queued.
    /// Returns false if nothing was written. When the client has disconnected, the frame is discarded and counts as
    /// written.
    pub(super) fn offer(&self, frame: impl FnOnce() -> Frame) -> bool {
        let mut out = self.state.lock();
        if !out.queue.is_empty() {
            return false;
        }
        let Some(socket) = out.socket.clone() else { return true };
        let frame = frame();
        match send_nonblocking(&socket, &frame) {
            Ok(all) if all == frame.len() => true,
            Ok(part) => {
                out.queue.push_back(frame);
                out.first_written = part;
                drop(out);
                self.queued.notify_one();
                true
            }
            Err(Errno::AGAIN) => false,
            // The connection's task will get the same error, and end.
            Err(_) => {
                out.queue.push_back(frame);
                drop(out);
                self.queued.notify_one();
                true
            }
        }
    }

    /// Queues a frame, and wakes the connection's task to write it.
    pub(super) fn enqueue(&self, frame: Frame) {
        let mut out = self.state.lock();
        if out.socket.is_some() {
            out.queue.push_back(frame);
            drop(out);
            self.queued.notify_one();
        }
    }

    /// Queues a frame that a [`ClientWriter::flush`] of the caller follows, so that it is written with others. Returns true
    /// if enough waits: then the caller flushes now.
    pub(super) fn enqueue_for_flush(&self, frame: Frame) -> bool {
        let mut out = self.state.lock();
        out.queue.push_back(frame);
        let bytes: usize = out.queue.iter().map(Vec::len).sum();
        bytes >= MAX_UNFLUSHED_BYTES || out.queue.len() >= MAX_FRAMES_PER_CALL
    }

    /// Waits until there may be frames to flush.
    pub(super) async fn wait_until_queued(&self) {
        self.queued.notified().await;
    }

    /// Writes a frame after all queued ones. Fails if the client has disconnected or does not read.
    pub(super) async fn write(&self, frame: Frame) -> io::Result<()> {
        self.state.lock().queue.push_back(frame);
        self.flush().await
    }

    /// Writes all queued frames; fails like [`ClientWriter::write`].
    pub(super) async fn flush(&self) -> io::Result<()> {
        let Some(full) = self.write_queued()? else { return Ok(()) };
        // Registers a duplicate of the descriptor, and only now: a descriptor that is always registered for writability
        // would wake the daemon each time the client reads.
        let room = full.socket.try_clone().and_then(|socket| register_socket(Arc::new(socket), Interest::WRITABLE));
        let mut deadline = Instant::now() + WRITE_TIMEOUT;
        loop {
            match &room {
                Ok(room) => {
                    let ready = timeout_at(deadline, room.writable()).await;
                    ready.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??.clear_ready();
                }
                // No descriptor is left: poll, so that replies are delivered nevertheless.
                Err(_) if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
                Err(_) => sleep(POLL_INTERVAL).await,
            }
            match self.write_queued()? {
                None => return Ok(()),
                Some(full) if full.completed_frame => deadline = Instant::now() + WRITE_TIMEOUT,
                Some(_) => {}
            }
        }
    }

    /// Ends the writer: drops queued frames, and discards later ones.
    pub(super) fn close(&self) {
        let mut out = self.state.lock();
        out.socket = None;
        out.queue.clear();
    }

    fn write_queued(&self) -> io::Result<Option<SocketFull>> {
        let mut out = self.state.lock();
        let Some(socket) = out.socket.clone() else { return Ok(None) };
        let mut completed_frame = false;
        while !out.queue.is_empty() {
            match send_queued(&socket, &out) {
                Ok(sent) => completed_frame |= out.remove_sent(sent),
                Err(Errno::AGAIN) => return Ok(Some(SocketFull { socket, completed_frame })),
                Err(e) => return Err(e.into()),
            }
        }
        Ok(None)
    }
}

impl WriterState {
    /// Removes the next `sent` bytes; returns true if that completes a frame.
    fn remove_sent(&mut self, sent: usize) -> bool {
        self.first_written += sent;
        let mut completed = false;
        while let Some(frame) = self.queue.front()
            && self.first_written >= frame.len()
        {
            self.first_written -= frame.len();
            self.queue.pop_front();
            completed = true;
        }
        completed
    }
}

/// Registers `socket` with the runtime for `interest` only. The runtime's own socket types would also register for
/// writability.
#[expect(
    deprecated,
    reason = "deprecated for descriptors that close while they are watched, which an owned one does not"
)]
pub(super) fn register_socket(socket: Arc<OwnedFd>, interest: Interest) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    AsyncFd::with_interest(socket, interest)
}

fn send_nonblocking(socket: &OwnedFd, bytes: &[u8]) -> rustix::io::Result<usize> {
    rustix::io::retry_on_intr(|| send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL))
}

/// Sends the first queued frames. Returns the number of bytes that the socket took.
fn send_queued(socket: &OwnedFd, out: &WriterState) -> rustix::io::Result<usize> {
    let mut frames = out.queue.iter().take(MAX_FRAMES_PER_CALL);
    let Some(first) = frames.next().map(|frame| &frame[out.first_written..]) else { return Ok(0) };
    if out.queue.len() == 1 {
        return send_nonblocking(socket, first);
    }
    let slices: Vec<_> = std::iter::once(first).chain(frames.map(Vec::as_slice)).map(IoSlice::new).collect();
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::io::retry_on_intr(|| sendmsg(socket, &slices, &mut SendAncillaryBuffer::default(), flags))
}
