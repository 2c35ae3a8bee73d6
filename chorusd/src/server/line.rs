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
const AGAIN: Duration = Duration::from_millis(10);

/// The way to one client, in order whoever writes.
#[derive(Debug)]
pub struct Line {
    out: Mutex<Out>,
    stuck: Notify,
}

#[derive(Debug)]
struct Out {
    /// `None`: the connection has ended.
    socket: Option<Arc<OwnedFd>>,
    waiting: VecDeque<Frame>,
    /// How much of the first frame that waits was written.
    written: usize,
}

/// The socket takes nothing more now.
struct Full {
    socket: Arc<OwnedFd>,
    /// It took the end of a frame before.
    moved: bool,
}

impl Line {
    /// A line to the other end of `socket`, which does not block.
    pub fn new(socket: Arc<OwnedFd>) -> Self {
        let out = Out { socket: Some(socket), waiting: VecDeque::new(), written: 0 };
        Self { out: Mutex::new(out), stuck: Notify::new() }
    }

    /// Writes a frame if that can be done at once, after all before it; false: it was not taken, and not made. What a
    /// client that has gone would have heard counts as written.
    pub fn offer(&self, frame: impl FnOnce() -> Frame) -> bool {
        let mut out = self.out();
        if !out.waiting.is_empty() {
            return false;
        }
        let Some(socket) = out.socket.clone() else { return true };
        let frame = frame();
        match put(&socket, &frame) {
            Ok(all) if all == frame.len() => true,
            Ok(part) => {
                out.waiting.push_back(frame);
                out.written = part;
                drop(out);
                self.stuck.notify_one();
                true
            }
            Err(Errno::AGAIN) => false,
            // The connection's task meets the same error, and ends.
            Err(_) => {
                out.waiting.push_back(frame);
                drop(out);
                self.stuck.notify_one();
                true
            }
        }
    }

    /// Leaves a frame for [`Line::flush`].
    pub fn queue(&self, frame: Frame) {
        let mut out = self.out();
        if out.socket.is_some() {
            out.waiting.push_back(frame);
            drop(out);
            self.stuck.notify_one();
        }
    }

    /// Waits until there may be something to flush.
    pub async fn stuck(&self) {
        self.stuck.notified().await;
    }

    /// Writes a frame, after all that wait.
    ///
    /// # Errors
    /// A client that has gone or takes nothing.
    pub async fn write(&self, frame: Frame) -> io::Result<()> {
        self.out().waiting.push_back(frame);
        self.flush().await
    }

    /// Writes all that waits.
    ///
    /// # Errors
    /// As for [`Line::write`].
    pub async fn flush(&self) -> io::Result<()> {
        let Some(full) = self.go_on()? else { return Ok(()) };
        // A descriptor of its own, and only now: one that were always watched for room would wake the daemon each time
        // that the client reads.
        let room = full.socket.try_clone().and_then(|socket| watch(Arc::new(socket), Interest::WRITABLE));
        let mut deadline = Instant::now() + WRITE_TIMEOUT;
        loop {
            match &room {
                Ok(room) => {
                    let ready = timeout_at(deadline, room.writable()).await;
                    ready.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??.clear_ready();
                }
                // No descriptor is left: what is under way is answered all the same.
                Err(_) if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
                Err(_) => sleep(AGAIN).await,
            }
            match self.go_on()? {
                None => return Ok(()),
                Some(full) if full.moved => deadline = Instant::now() + WRITE_TIMEOUT,
                Some(_) => {}
            }
        }
    }

    /// Ends the line: what waits is dropped, and what comes.
    pub fn close(&self) {
        let mut out = self.out();
        out.socket = None;
        out.waiting.clear();
    }

    fn go_on(&self) -> io::Result<Option<Full>> {
        let mut out = self.out();
        let Some(socket) = out.socket.clone() else { return Ok(None) };
        let mut moved = false;
        while let Some(frame) = out.waiting.front() {
            match put(&socket, &frame[out.written..]) {
                Ok(part) if out.written + part < frame.len() => out.written += part,
                Ok(_) => {
                    out.waiting.pop_front();
                    out.written = 0;
                    moved = true;
                }
                Err(Errno::AGAIN) => return Ok(Some(Full { socket, moved })),
                Err(e) => return Err(e.into()),
            }
        }
        Ok(None)
    }

    fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
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
pub fn watch(socket: Arc<OwnedFd>, interest: Interest) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    AsyncFd::with_interest(socket, interest)
}

fn put(socket: &OwnedFd, bytes: &[u8]) -> rustix::io::Result<usize> {
    rustix::io::retry_on_intr(|| send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL))
}
