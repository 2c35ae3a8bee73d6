//! Frames that wait to be written.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use bytes::Bytes;
use chorus_base::sync::Mutex;
use chorus_proto::frame::{FrameTooLong, HEADER_BYTES, encode_header};
use tokio::sync::Notify;

/// Bytes that wait before no more are accepted.
const MAX_QUEUED_BYTES: usize = 64 << 10;

/// Limit of frames of one write.
const MAX_FRAMES_PER_WRITE: usize = 32;

/// Places a frame of a tunnel in the queue, from any thread. The task that writes is woken.
#[derive(Debug, Clone)]
pub struct FrameQueue {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    pending: Mutex<Pending>,
    queued: Notify,
    limit: usize,
}

#[derive(Debug, Default)]
struct Pending {
    frames: VecDeque<QueuedFrame>,
    bytes: usize,
    /// Bytes of the first frame that were written.
    first_written: usize,
    /// Frames of the tunnel that were queued, and those with all bytes given to TLS.
    queued: u64,
    written: u64,
    is_closed: bool,
}

#[derive(Debug)]
struct QueuedFrame {
    header: [u8; HEADER_BYTES],
    body: Bytes,
    /// False for what belongs to no tunnel, and for the end of one.
    is_numbered: bool,
}

/// Reason why a frame was not queued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// Too much waits: flush first. The frame is returned.
    #[error("too many frames wait to be written")]
    Full(Bytes),
    /// Longer than a frame may be.
    #[error("{0}")]
    TooLong(FrameTooLong),
    /// An empty frame is the end of a tunnel.
    #[error("a frame of a tunnel is not empty")]
    Empty,
    /// The tunnel has ended.
    #[error("the tunnel has ended")]
    Closed,
}

impl FrameQueue {
    pub(crate) fn new(limit: usize) -> Self {
        Self { shared: Arc::new(Shared { pending: Mutex::default(), queued: Notify::new(), limit }) }
    }

    /// Queues a frame with this body. Returns its number in the tunnel, from 0. A frame is accepted as long as less than 64 KiB wait, so a
    /// longer one is, too.
    ///
    /// # Errors
    /// [`Rejected`]; nothing was queued.
    pub fn offer(&self, body: Bytes) -> Result<u64, Rejected> {
        if body.is_empty() {
            return Err(Rejected::Empty);
        }
        let header = encode_header(body.len(), self.shared.limit).map_err(Rejected::TooLong)?;
        let number = {
            let mut pending = self.shared.pending.lock();
            if pending.is_closed {
                return Err(Rejected::Closed);
            }
            if pending.bytes >= MAX_QUEUED_BYTES {
                return Err(Rejected::Full(body));
            }
            pending.push(header, body, true);
            pending.queued += 1;
            pending.queued - 1
        };
        self.shared.queued.notify_one();
        Ok(number)
    }

    /// Waits until frames may have been queued since the last flush.
    pub(crate) async fn wait_until_queued(&self) {
        self.shared.queued.notified().await;
    }

    /// Queues a frame that is not numbered, in spite of the limits.
    pub(crate) fn push_control(&self, body: Bytes) {
        let header = u32::try_from(body.len()).unwrap_or_default().to_be_bytes();
        self.shared.pending.lock().push(header, body, false);
    }

    /// Gives the waiting bytes to `write`, which returns how many of them it took. `None` if nothing waits.
    pub(crate) fn write_with<T>(
        &self,
        write: impl FnOnce(&[IoSlice<'_>]) -> T,
        taken: impl FnOnce(&T) -> usize,
    ) -> Option<T> {
        let mut pending = self.shared.pending.lock();
        if pending.frames.is_empty() {
            return None;
        }
        let mut skip = pending.first_written;
        let parts = pending.frames.iter().take(MAX_FRAMES_PER_WRITE).flat_map(|frame| [&frame.header[..], &frame.body]);
        let slices: Vec<_> = parts
            .map(|part| {
                let rest = part.get(skip..).unwrap_or_default();
                skip -= part.len() - rest.len();
                IoSlice::new(rest)
            })
            .filter(|slice| !slice.is_empty())
            .collect();
        let result = write(&slices);
        pending.remove(taken(&result));
        Some(result)
    }

    /// Refuses more frames. What waits is still written.
    pub(crate) fn close(&self) {
        self.shared.pending.lock().is_closed = true;
    }

    /// True if the frame of this number left this process, perhaps. False if it surely did not.
    pub(crate) fn may_be_written(&self, number: u64) -> bool {
        number < self.shared.pending.lock().written
    }
}

impl Pending {
    fn push(&mut self, header: [u8; HEADER_BYTES], body: Bytes, is_numbered: bool) {
        self.bytes += HEADER_BYTES + body.len();
        self.frames.push_back(QueuedFrame { header, body, is_numbered });
    }

    fn remove(&mut self, written: usize) {
        self.bytes -= written;
        self.first_written += written;
        while let Some(frame) = self.frames.front()
            && self.first_written >= HEADER_BYTES + frame.body.len()
        {
            self.first_written -= HEADER_BYTES + frame.body.len();
            self.written += u64::from(frame.is_numbered);
            self.frames.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(queue: &FrameQueue, most: usize) -> Vec<u8> {
        let written = queue.write_with(
            |slices| {
                let all: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
                all[..all.len().min(most)].to_vec()
            },
            Vec::len,
        );
        written.unwrap_or_default()
    }

    #[test]
    fn bytes_are_the_same_however_few_are_taken_at_a_time() {
        let bodies: Vec<Bytes> =
            (1..80_usize).map(|length| vec![u8::try_from(length).unwrap(); length].into()).collect();
        for most in [1, 2, 3, 4, 5, 7, 100, usize::MAX] {
            let queue = FrameQueue::new(100);
            bodies.iter().for_each(|body| assert!(queue.offer(body.clone()).is_ok()));
            let (mut expected, mut got) = (Vec::new(), Vec::new());
            for body in &bodies {
                expected.extend_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes());
                expected.extend_from_slice(body);
            }
            loop {
                let part = take(&queue, most);
                if part.is_empty() {
                    break;
                }
                got.extend_from_slice(&part);
            }
            assert_eq!(got, expected, "{most}");
        }
    }

    #[test]
    fn a_frame_is_written_once_its_last_byte_is() {
        let queue = FrameQueue::new(100);
        queue.push_control(Bytes::from_static(b"open"));
        assert_eq!(queue.offer(Bytes::from_static(b"first")), Ok(0));
        assert_eq!(queue.offer(Bytes::from_static(b"second")), Ok(1));
        assert_eq!(take(&queue, 8 + 8).len(), 16);
        assert!(!queue.may_be_written(0), "a byte is missing");
        assert_eq!(take(&queue, 1), b"t");
        assert!(queue.may_be_written(0) && !queue.may_be_written(1));
    }

    #[test]
    fn what_cannot_be_a_frame_of_a_tunnel_is_refused() {
        let queue = FrameQueue::new(1 << 20);
        assert_eq!(queue.offer(Bytes::new()), Err(Rejected::Empty));
        assert!(matches!(queue.offer(vec![0; (1 << 20) + 1].into()), Err(Rejected::TooLong(_))));
        assert_eq!(queue.offer(vec![0; 1 << 20].into()), Ok(0));
        assert_eq!(queue.offer(Bytes::from_static(b"x")), Err(Rejected::Full(Bytes::from_static(b"x"))));
        take(&queue, usize::MAX);
        assert_eq!(queue.offer(Bytes::from_static(b"x")), Ok(1));
        queue.close();
        assert_eq!(queue.offer(Bytes::from_static(b"x")), Err(Rejected::Closed));
    }
}
