//! Limits on partly received frames: how slowly one may arrive, and how many bytes all connections may receive at once.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use chorus_base::error::Error;
use chorus_proto::frame::{HEADER_BYTES, decode_header};
use chorus_proto::{ErrorKind, RpcError};
use futures_util::future::BoxFuture;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::frame_budget::{FrameBudget, FramePermit};
use super::reply;

/// Frames up to this length in bytes need no budget.
const MAX_SHORT_FRAME_BYTES: usize = 64 << 10;
/// The bytes per second that a client must send of a frame that it has begun.
const MIN_BYTES_PER_SECOND: u128 = 64 << 10;
/// The divisor of `frame_timeout` that gives the time after which a frame releases its budget to one that waits.
const HOLD_DIVISOR: u32 = 5;

/// A permit, or the error that waiting for it took too long.
pub(super) type PermitOutcome = Result<FramePermit, Elapsed>;

/// The frame that one connection is receiving.
pub(super) struct IncomingFrame {
    budget: FrameBudget,
    permit: PermitState,
    /// The longest wait for budget, and the time in which a client must send `quota` bytes.
    limit: Duration,
    quota: usize,
    /// Length of the frame including its header, once known, if the frame is long.
    total_length: usize,
    /// The remaining part of that time, and the bytes that were received in it.
    time_left: Duration,
    quota_received: usize,
}

/// The frame's part of the budget.
enum PermitState {
    /// None: its length is not known yet, or it needs none.
    None,
    Waiting(BoxFuture<'static, PermitOutcome>),
    Held(FramePermit),
}

impl IncomingFrame {
    /// Creates the state before any frame has begun. `limit` is `frame_timeout`.
    #[must_use]
    pub(super) fn new(budget: FrameBudget, limit: Duration) -> Self {
        let quota =
            usize::try_from(limit.as_millis().saturating_mul(MIN_BYTES_PER_SECOND) / 1000).unwrap_or(usize::MAX);
        Self {
            budget,
            permit: PermitState::None,
            limit,
            quota: quota.max(1),
            total_length: 0,
            time_left: limit,
            quota_received: 0,
        }
    }

    /// Records that the frame is complete; the next one begins with the full time limit.
    pub(super) fn finish(&mut self) {
        self.permit = PermitState::None;
        (self.time_left, self.quota_received) = (self.limit, 0);
    }

    /// Examines the beginning of the frame. Requests budget once the length is known and long.
    pub(super) fn request_permit(&mut self, begun: &BytesMut, max_frame: usize) {
        let PermitState::None = self.permit else { return };
        let length = begun.first_chunk::<HEADER_BYTES>().and_then(|header| decode_header(*header, max_frame).ok());
        let Some(length) = length.filter(|length| *length > MAX_SHORT_FRAME_BYTES) else { return };
        self.total_length = HEADER_BYTES + length;
        self.permit = match self.budget.try_acquire(length) {
            Some(held) => PermitState::Held(held),
            None => PermitState::Waiting(Box::pin(timeout(
                self.limit,
                self.budget.clone().acquire(length, self.limit / HOLD_DIVISOR),
            ))),
        };
    }

    /// Allocates `begun` for the whole frame if it holds budget. A buffer that grew with the bytes would exist twice
    /// while it is copied.
    pub(super) fn reserve_buffer(&self, begun: &mut BytesMut) {
        if let PermitState::Held(_) = self.permit {
            begun.reserve(self.total_length.saturating_sub(begun.len()));
        }
    }

    /// Returns true if the frame must not be read before it has budget.
    #[must_use]
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.permit, PermitState::Waiting(_))
    }

    /// Waits for budget; never returns if the frame needs none. May be dropped and called again without losing its
    /// place in the queue.
    pub(super) async fn wait_for_permit(&mut self) -> PermitOutcome {
        match &mut self.permit {
            PermitState::Waiting(wanted) => wanted.await,
            _ => std::future::pending().await,
        }
    }

    /// Accepts the outcome of [`IncomingFrame::wait_for_permit`]; fails with `busy` if the wait took too long.
    pub(super) fn accept_permit(&mut self, given: PermitOutcome) -> Result<(), RpcError> {
        if let Ok(held) = given {
            self.permit = PermitState::Held(held);
            return Ok(());
        }
        self.permit = PermitState::None;
        Err(busy_error("too many long frames are being received"))
    }

    /// Waits until the frame is evicted; never returns if it holds no budget.
    pub(super) fn evicted(&self) -> impl Future<Output = ()> + use<> {
        let evicted = match &self.permit {
            PermitState::Held(held) => Some(held.evicted()),
            _ => None,
        };
        async move {
            match evicted {
                Some(evicted) => evicted.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Runs `write` while a frame is partly received. The frame continues to wait for its permit meanwhile, so that
    /// those behind it in the queue do not wait for the write.
    ///
    /// # Errors
    /// Those of `write`; `TimedOut` if the client does not read and the frame is evicted.
    pub(super) async fn run_write(&mut self, write: impl Future<Output = io::Result<()>>) -> io::Result<()> {
        let (mut write, mut late) = (std::pin::pin!(write), false);
        loop {
            let evicted = self.evicted();
            let given = tokio::select! {
                biased;
                written = &mut write => return written,
                () = evicted => return Err(io::ErrorKind::TimedOut.into()),
                given = self.wait_for_permit(), if !late => given,
            };
            self.permit = match given {
                Ok(held) => PermitState::Held(held),
                Err(elapsed) => {
                    late = true;
                    // Reported after the write.
                    PermitState::Waiting(Box::pin(std::future::ready(Err(elapsed))))
                }
            };
        }
    }

    /// Returns the time within which more bytes must arrive.
    #[must_use]
    pub(super) fn time_left(&self) -> Duration {
        self.time_left
    }

    /// Records that the connection waited so long for bytes of the frame.
    pub(super) fn count_wait(&mut self, time: Duration) {
        self.time_left = self.time_left.saturating_sub(time);
    }

    /// Records received bytes of the frame. The client gets its full time again for each quota that it sends.
    pub(super) fn count_received(&mut self, bytes: usize) {
        self.quota_received += bytes;
        if self.quota_received >= self.quota {
            (self.time_left, self.quota_received) = (self.limit, 0);
        }
    }
}

/// Returns the error for a frame that cannot be received because no budget is free.
#[must_use]
pub(super) fn busy_error(why: &str) -> RpcError {
    reply::to_rpc_error(&Error::new(ErrorKind::Busy, why).hint("try again in a moment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);
    const MIB: usize = 1 << 20;

    fn header(length: usize) -> BytesMut {
        BytesMut::from(&u32::try_from(length).unwrap().to_be_bytes()[..])
    }

    fn begun(room: &FrameBudget, length: usize) -> IncomingFrame {
        let mut frame = IncomingFrame::new(room.clone(), LIMIT);
        frame.request_permit(&header(length), 16 * MIB);
        frame
    }

    /// Returns true if a client that sends `bytes` every `pause` is not disconnected within a minute.
    fn lasts(bytes: usize, pause: Duration) -> bool {
        let mut frame = IncomingFrame::new(FrameBudget::new(MIB), LIMIT);
        let mut time = Duration::ZERO;
        while time < Duration::from_secs(60) {
            if pause >= frame.time_left() {
                return false;
            }
            frame.count_wait(pause);
            frame.count_received(bytes);
            time += pause;
        }
        true
    }

    #[test]
    fn a_client_must_keep_a_least_rate() {
        let ms = Duration::from_millis;
        for (bytes, pause) in [(1, ms(1)), (1, ms(4900)), (1000, ms(100)), (60_000, ms(1000)), (1 << 18, ms(4990))] {
            assert!(!lasts(bytes, pause), "{bytes} bytes every {pause:?}");
        }
        for (bytes, pause) in [(7000, ms(100)), (83_000, ms(1000)), (MIB, ms(1000)), (MIB, ms(4900)), (1000, ms(10))] {
            assert!(lasts(bytes, pause), "{bytes} bytes every {pause:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn long_frames_share_the_room_and_small_ones_need_none() {
        let room = FrameBudget::new(16 * MIB);
        let mut held: Vec<_> = (0..8).map(|_| begun(&room, 16 * MIB)).collect();
        assert!(held.iter().all(|frame| !frame.is_waiting()));
        assert!(!begun(&room, MAX_SHORT_FRAME_BYTES).is_waiting() && !begun(&room, 0).is_waiting());
        let (mut first, mut second) = (begun(&room, 16 * MIB), begun(&room, MAX_SHORT_FRAME_BYTES + 1));
        assert!(first.is_waiting() && second.is_waiting(), "in the order in which they came, however long they are");
        // A wait that is dropped and begun again keeps its place.
        for _ in 0..3 {
            assert!(timeout(Duration::from_millis(300), first.wait_for_permit()).await.is_err());
        }
        held[0].finish();
        let given = first.wait_for_permit().await;
        assert!(first.accept_permit(given).is_ok() && !first.is_waiting());
        // No holder releases its part, so the error comes after the whole time.
        let given = second.wait_for_permit().await;
        let refused = second.accept_permit(given).unwrap_err();
        assert_eq!(refused.data.unwrap().kind, ErrorKind::Busy);
        // A frame that is dropped releases its budget.
        drop(held);
        drop(first);
        assert!((0..8).map(|_| begun(&room, 16 * MIB)).all(|frame| !frame.is_waiting()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_frame_that_holds_room_for_longest_leaves_it_to_one_that_waits() {
        let room = FrameBudget::new(16 * MIB);
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(begun(&room, 16 * MIB));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let evicted = async |frame: &IncomingFrame| timeout(Duration::ZERO, frame.evicted()).await.is_ok();
        tokio::time::sleep(LIMIT).await;
        assert!(!evicted(&held[0]).await, "nobody waits");
        let mut waiting: Vec<_> = (0..3).map(|_| begun(&room, 12 * MIB)).collect();
        for (oldest, frame) in waiting.iter_mut().enumerate() {
            assert!(timeout(Duration::from_millis(1), frame.wait_for_permit()).await.is_err());
            for (at, other) in held.iter().enumerate() {
                assert_eq!(evicted(other).await, at == oldest, "one only, the oldest");
            }
            held[oldest].finish();
            let given = frame.wait_for_permit().await;
            assert!(frame.accept_permit(given).is_ok());
        }
        // 12 of 128 MiB are free, and the newest holders have not held theirs long enough.
        held.drain(..3);
        held.iter_mut().for_each(IncomingFrame::finish);
        let mut last: Vec<_> = (0..6).map(|_| begun(&room, 16 * MIB)).collect();
        assert_eq!(last.iter().filter(|frame| frame.is_waiting()).count(), 1);
        let began = tokio::time::Instant::now();
        tokio::select! {
            _ = last[5].wait_for_permit() => panic!("nobody left"),
            () = waiting[0].evicted() => assert!(began.elapsed() <= LIMIT / HOLD_DIVISOR),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_has_to_leave_for_room_that_came_back_by_itself() {
        let room = FrameBudget::new(32 * MIB);
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(begun(&room, 16 * MIB));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut waiting = IncomingFrame::new(room.clone(), LIMIT);
        waiting.request_permit(&header(32 * MIB), 32 * MIB);
        let evicted = async |frame: &IncomingFrame| timeout(Duration::ZERO, frame.evicted()).await.is_ok();
        tokio::select! {
            biased;
            _ = waiting.wait_for_permit() => panic!("nobody left"),
            () = held[0].evicted() => {}
        }
        // This frees the other half of what the frame needs.
        held[7].finish();
        assert!(timeout(LIMIT / HOLD_DIVISOR, waiting.wait_for_permit()).await.is_err());
        for frame in &held[1..7] {
            assert!(!evicted(frame).await);
        }
        held[0].finish();
        assert!(waiting.wait_for_permit().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_waits_while_its_client_takes_nothing_keeps_nobody_waiting() {
        let room = FrameBudget::new(128 * MIB);
        let [held, mut stuck, mut behind] = std::array::from_fn(|_| {
            let mut frame = IncomingFrame::new(room.clone(), LIMIT);
            frame.request_permit(&header(128 * MIB), 128 * MIB);
            frame
        });
        let writes = async move { stuck.run_write(std::future::pending()).await };
        let leaves = async move { held.evicted().await };
        let (written, (), given) = tokio::join!(writes, leaves, behind.wait_for_permit());
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(given.is_ok(), "it had to wait for the write");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_ends_during_a_write_is_told_after_it() {
        let room = FrameBudget::new(MIB);
        let (_held, mut late) = (begun(&room, 16 * MIB), IncomingFrame::new(room.clone(), LIMIT));
        let _rest: Vec<_> = (0..7).map(|_| begun(&room, 16 * MIB)).collect();
        late.request_permit(&header(MIB), MIB);
        let write = async {
            tokio::time::sleep(LIMIT * 2).await;
            Ok(())
        };
        assert!(late.run_write(write).await.is_ok());
        assert!(late.is_waiting());
        let given = late.wait_for_permit().await;
        assert!(late.accept_permit(given).is_err() && !late.is_waiting());
    }

    #[test]
    fn the_longest_frame_that_is_allowed_fits() {
        let mut frame = IncomingFrame::new(FrameBudget::new(1 << 30), LIMIT);
        frame.request_permit(&header(1 << 30), 1 << 30);
        assert!(!frame.is_waiting());
    }
}
