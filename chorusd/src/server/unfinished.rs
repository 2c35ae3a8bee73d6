//! Limits for frames that have begun and not ended: how slowly one may arrive, and how much all connections may receive at once.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use chorus_proto::frame::{HEADER, body_length};
use chorus_proto::{ErrorKind, RpcError};
use futures_util::future::BoxFuture;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::reply;
use crate::failure::Failure;

/// Frames up to this length need no room.
const SMALL: usize = 64 << 10;
/// The sum of the lengths of longer frames that may be on their way at once.
const TOGETHER: usize = 128 << 20;
/// Bytes a second that a client must send of a frame that it has begun.
const RATE: u128 = 64 << 10;
/// Room is counted in units of so many bytes.
const UNIT: usize = 1 << 10;

/// Room for the long frames of all connections, given out in the order in which it was asked for.
#[derive(Debug, Clone)]
pub struct Room {
    units: Arc<Semaphore>,
}

impl Room {
    /// Room for frames of at most `longest` bytes: at least one of them fits.
    #[must_use]
    pub fn new(longest: usize) -> Self {
        Self { units: Arc::new(Semaphore::new(TOGETHER.max(longest).div_ceil(UNIT))) }
    }
}

/// Room that was given, or that it took too long.
pub type Given = Result<Result<OwnedSemaphorePermit, AcquireError>, Elapsed>;

/// The frame that one connection is receiving.
pub struct Unfinished {
    room: Room,
    share: Share,
    /// The longest wait for room, and the time in which a client must send `quota` bytes.
    limit: Duration,
    quota: usize,
    /// The rest of that time, and the bytes that have come in it.
    left: Duration,
    came: usize,
}

/// The part of the room that the frame has.
enum Share {
    /// None: its length is not known yet, or it needs none.
    None,
    Wanted(BoxFuture<'static, Given>),
    #[expect(dead_code, reason = "it is given back when it is dropped")]
    Has(OwnedSemaphorePermit),
}

impl Unfinished {
    /// No frame has begun. `limit` is `frame_timeout`.
    #[must_use]
    pub fn new(room: Room, limit: Duration) -> Self {
        let quota = usize::try_from(limit.as_millis().saturating_mul(RATE) / 1000).unwrap_or(usize::MAX);
        Self { room, share: Share::None, limit, quota: quota.max(1), left: limit, came: 0 }
    }

    /// Notes that the frame ended; the next one begins with a full time limit.
    pub fn end(&mut self) {
        self.share = Share::None;
        (self.left, self.came) = (self.limit, 0);
    }

    /// Looks at the beginning of the frame. Once its length is known and long, room is asked for.
    pub fn announced(&mut self, begun: &BytesMut, max_frame: usize) {
        let Share::None = self.share else { return };
        let length = begun.first_chunk::<HEADER>().and_then(|header| body_length(*header, max_frame).ok());
        let Some(length) = length.filter(|length| *length > SMALL) else { return };
        let units = u32::try_from(length.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let room = self.room.units.clone();
        self.share = match room.clone().try_acquire_many_owned(units) {
            Ok(share) => Share::Has(share),
            Err(_) => Share::Wanted(Box::pin(timeout(self.limit, room.acquire_many_owned(units)))),
        };
    }

    /// Returns true if the frame must not be read before there is room for it.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self.share, Share::Wanted(_))
    }

    /// Waits for room; forever if the frame needs none. Can be dropped and called again without losing its place.
    pub async fn room(&mut self) -> Given {
        match &mut self.share {
            Share::Wanted(wanted) => wanted.await,
            _ => std::future::pending().await,
        }
    }

    /// Takes the room that was waited for.
    ///
    /// # Errors
    /// `busy`: it took too long.
    pub fn take(&mut self, given: Given) -> Result<(), RpcError> {
        if let Ok(Ok(share)) = given {
            self.share = Share::Has(share);
            return Ok(());
        }
        self.share = Share::None;
        let failure = Failure::new(ErrorKind::Busy, "too many long frames are being received");
        Err(reply::to_rpc(&failure.hint("try again in a moment")))
    }

    /// The time within which more must arrive.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.left
    }

    /// Notes that the connection waited so long for bytes of the frame.
    pub fn waited(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }

    /// Notes that bytes of the frame came. The client gets its full time again for each quota that it sends.
    pub fn came(&mut self, bytes: usize) {
        self.came += bytes;
        if self.came >= self.quota {
            (self.left, self.came) = (self.limit, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);
    const MIB: usize = 1 << 20;

    fn header(length: usize) -> BytesMut {
        BytesMut::from(&u32::try_from(length).unwrap().to_be_bytes()[..])
    }

    fn begun(room: &Room, length: usize) -> Unfinished {
        let mut frame = Unfinished::new(room.clone(), LIMIT);
        frame.announced(&header(length), 16 * MIB);
        frame
    }

    /// Returns true if a client that sends `bytes` every `pause` is let on for a minute.
    fn lasts(bytes: usize, pause: Duration) -> bool {
        let mut frame = Unfinished::new(Room::new(MIB), LIMIT);
        let mut time = Duration::ZERO;
        while time < Duration::from_secs(60) {
            if pause >= frame.left() {
                return false;
            }
            frame.waited(pause);
            frame.came(bytes);
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
        let room = Room::new(16 * MIB);
        let mut held: Vec<_> = (0..8).map(|_| begun(&room, 16 * MIB)).collect();
        assert!(held.iter().all(|frame| !frame.waits()));
        assert!(!begun(&room, SMALL).waits() && !begun(&room, 0).waits());
        let (mut first, mut second) = (begun(&room, 16 * MIB), begun(&room, SMALL + 1));
        assert!(first.waits() && second.waits(), "in the order in which they came, however long they are");
        // A wait that is dropped and begun again keeps its place.
        for _ in 0..3 {
            assert!(timeout(Duration::from_secs(1), first.room()).await.is_err());
        }
        held[0].end();
        let given = first.room().await;
        assert!(first.take(given).is_ok() && !first.waits());
        // Nobody else ends: it is told after the whole time.
        let given = second.room().await;
        let refused = second.take(given).unwrap_err();
        assert_eq!(refused.data.unwrap().kind, ErrorKind::Busy);
        // A frame that is dropped gives its room back.
        drop(held);
        drop(first);
        assert!((0..8).map(|_| begun(&room, 16 * MIB)).all(|frame| !frame.waits()));
    }

    #[test]
    fn the_longest_frame_that_is_allowed_fits() {
        let mut frame = Unfinished::new(Room::new(1 << 30), LIMIT);
        frame.announced(&header(1 << 30), 1 << 30);
        assert!(!frame.waits());
    }
}
