//! What goes to one client. A frame goes straight into the socket where that takes it, on the thread of whoever has it;
//! what does not fit is written by the connection's task. To wake that task for each token of a stream would cost more
//! than all else that a token costs.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::reply::Frame;

/// A client that does not take a frame within this is let go.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Where room cannot be waited for, it is looked for this often.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The way to one client, in order whoever writes.
#[derive(Debug)]
pub struct ClientWriter {
    state: Mutex<WriterState>,
    queued: Notify,
}

#[derive(Debug)]
struct WriterState {
    /// `None`: the connection has ended.
    socket: Option<Arc<OwnedFd>>,
    queue: VecDeque<Frame>,
    /// How much of the first frame that waits was written.
    first_written: usize,
}

/// The socket takes nothing more now.
struct SocketFull {
    socket: Arc<OwnedFd>,
    /// It took the end of a frame before.
    completed_frame: bool,
}

impl ClientWriter {
    /// A line to the other end of `socket`, which does not block.
    pub fn new(socket: Arc<OwnedFd>) -> Self {
        let out = WriterState { socket: Some(socket), queue: VecDeque::new(), first_written: 0 };
        Self { state: Mutex::new(out), queued: Notify::new() }
    }

    /// Writes a frame if that can be done at once, after all before it; false: it was not taken, and not made. What a
    /// client that has gone would have heard counts as written.
    pub fn offer(&self, frame: impl FnOnce() -> Frame) -> bool {
        let mut out = self.lock_state();
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
            // The connection's task meets the same error, and ends.
            Err(_) => {
                out.queue.push_back(frame);
                drop(out);
                self.queued.notify_one();
                true
            }
        }
    }

    /// Leaves a frame for [`Line::flush`].
    pub fn enqueue(&self, frame: Frame) {
        let mut out = self.lock_state();
        if out.socket.is_some() {
            out.queue.push_back(frame);
            drop(out);
            self.queued.notify_one();
        }
    }

    /// Waits until there may be something to flush.
    pub async fn wait_until_queued(&self) {
        self.queued.notified().await;
    }

    /// Writes a frame, after all that wait.
    ///
    /// # Errors
    /// A client that has gone or takes nothing.
    pub async fn write(&self, frame: Frame) -> io::Result<()> {
        self.lock_state().queue.push_back(frame);
        self.flush().await
    }

    /// Writes all that waits.
    ///
    /// # Errors
    /// As for [`Line::write`].
    pub async fn flush(&self) -> io::Result<()> {
        let Some(full) = self.write_queued()? else { return Ok(()) };
        // A descriptor of its own, and only now: one that were always watched for room would wake the daemon each time
        // that the client reads.
        let room = full.socket.try_clone().and_then(|socket| register_socket(Arc::new(socket), Interest::WRITABLE));
        let mut deadline = Instant::now() + WRITE_TIMEOUT;
        loop {
            match &room {
                Ok(room) => {
                    let ready = timeout_at(deadline, room.writable()).await;
                    ready.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??.clear_ready();
                }
                // No descriptor is left: what is under way is answered all the same.
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

    /// Ends the line: what waits is dropped, and what comes.
    pub fn close(&self) {
        let mut out = self.lock_state();
        out.socket = None;
        out.queue.clear();
    }

    fn write_queued(&self) -> io::Result<Option<SocketFull>> {
        let mut out = self.lock_state();
        let Some(socket) = out.socket.clone() else { return Ok(None) };
        let mut moved = false;
        while let Some(frame) = out.queue.front() {
            match send_nonblocking(&socket, &frame[out.first_written..]) {
                Ok(part) if out.first_written + part < frame.len() => out.first_written += part,
                Ok(_) => {
                    out.queue.pop_front();
                    out.first_written = 0;
                    moved = true;
                }
                Err(Errno::AGAIN) => return Ok(Some(SocketFull { socket, completed_frame: moved })),
                Err(e) => return Err(e.into()),
            }
        }
        Ok(None)
    }

    fn lock_state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches `socket` for nothing but `interest`: a socket of the runtime's own is watched for room too.
///
/// # Errors
/// What the system says.
#[expect(
    deprecated,
    reason = "deprecated for descriptors that close while they are watched, which an owned one does not"
)]
pub fn register_socket(socket: Arc<OwnedFd>, interest: Interest) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    AsyncFd::with_interest(socket, interest)
}

fn send_nonblocking(socket: &OwnedFd, bytes: &[u8]) -> rustix::io::Result<usize> {
    rustix::io::retry_on_intr(|| send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL))
}
