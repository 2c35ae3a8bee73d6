//! Limits for frames that have begun and not ended: how slowly one may arrive, and how much all connections may receive at once.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use chorus_proto::frame::{HEADER, body_length};
use chorus_proto::{ErrorKind, RpcError};
use futures_util::future::BoxFuture;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::reply;
use super::room::{Held, Room};
use crate::failure::Failure;

/// Frames up to this length need no room.
const SMALL: usize = 64 << 10;
/// Bytes a second that a client must send of a frame that it has begun.
const RATE: u128 = 64 << 10;
/// The part of `frame_timeout` after which a frame that holds room leaves it to one that waits.
const HOLD: u32 = 5;

/// Room that was given, or that it took too long.
pub type Given = Result<Held, Elapsed>;

/// The frame that one connection is receiving.
pub struct Unfinished {
    room: Room,
    share: Share,
    /// The longest wait for room, and the time in which a client must send `quota` bytes.
    limit: Duration,
    quota: usize,
    /// Length of the frame with its header, once that is known and long.
    whole: usize,
    /// The rest of that time, and the bytes that have come in it.
    left: Duration,
    came: usize,
}

/// The part of the room that the frame has.
enum Share {
    /// None: its length is not known yet, or it needs none.
    None,
    Wanted(BoxFuture<'static, Given>),
    Has(Held),
}

impl Unfinished {
    /// No frame has begun. `limit` is `frame_timeout`.
    #[must_use]
    pub fn new(room: Room, limit: Duration) -> Self {
        let quota = usize::try_from(limit.as_millis().saturating_mul(RATE) / 1000).unwrap_or(usize::MAX);
        Self { room, share: Share::None, limit, quota: quota.max(1), whole: 0, left: limit, came: 0 }
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
        self.whole = HEADER + length;
        self.share = match self.room.try_take(length) {
            Some(held) => Share::Has(held),
            None => Share::Wanted(Box::pin(timeout(self.limit, self.room.clone().take(length, self.limit / HOLD)))),
        };
    }

    /// Makes `begun` large enough for a frame that has room: one that grew as bytes came would be there twice while it is copied.
    pub fn reserve(&self, begun: &mut BytesMut) {
        if let Share::Has(_) = self.share {
            begun.reserve(self.whole.saturating_sub(begun.len()));
        }
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
        if let Ok(held) = given {
            self.share = Share::Has(held);
            return Ok(());
        }
        self.share = Share::None;
        Err(busy("too many long frames are being received"))
    }

    /// Waits until the frame has to leave its room to another; forever if it has none.
    pub fn evicted(&self) -> impl Future<Output = ()> + use<> {
        let evicted = match &self.share {
            Share::Has(held) => Some(held.evicted()),
            _ => None,
        };
        async move {
            match evicted {
                Some(evicted) => evicted.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Writes to the client while part of the frame is received. Its wait for room goes on meanwhile, so that nobody behind
    /// it in the line waits for the write.
    ///
    /// # Errors
    /// Those of `write`; `TimedOut`: the client took nothing, and the frame has to leave its room to another.
    pub async fn while_written(&mut self, write: impl Future<Output = io::Result<()>>) -> io::Result<()> {
        let (mut write, mut late) = (std::pin::pin!(write), false);
        loop {
            let evicted = self.evicted();
            let given = tokio::select! {
                biased;
                written = &mut write => return written,
                () = evicted => return Err(io::ErrorKind::TimedOut.into()),
                given = self.room(), if !late => given,
            };
            self.share = match given {
                Ok(held) => Share::Has(held),
                Err(elapsed) => {
                    late = true;
                    // It is told once the write is over.
                    Share::Wanted(Box::pin(std::future::ready(Err(elapsed))))
                }
            };
        }
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

/// Makes the answer to a frame that is not received for want of room.
#[must_use]
pub fn busy(why: &str) -> RpcError {
    reply::to_rpc(&Failure::new(ErrorKind::Busy, why).hint("try again in a moment"))
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
            assert!(timeout(Duration::from_millis(300), first.room()).await.is_err());
        }
        held[0].end();
        let given = first.room().await;
        assert!(first.take(given).is_ok() && !first.waits());
        // Nobody who has to leave does: it is told after the whole time.
        let given = second.room().await;
        let refused = second.take(given).unwrap_err();
        assert_eq!(refused.data.unwrap().kind, ErrorKind::Busy);
        // A frame that is dropped gives its room back.
        drop(held);
        drop(first);
        assert!((0..8).map(|_| begun(&room, 16 * MIB)).all(|frame| !frame.waits()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_frame_that_holds_room_for_longest_leaves_it_to_one_that_waits() {
        let room = Room::new(16 * MIB);
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(begun(&room, 16 * MIB));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let evicted = async |frame: &Unfinished| timeout(Duration::ZERO, frame.evicted()).await.is_ok();
        tokio::time::sleep(LIMIT).await;
        assert!(!evicted(&held[0]).await, "nobody waits");
        let mut waiting: Vec<_> = (0..3).map(|_| begun(&room, 12 * MIB)).collect();
        for (oldest, frame) in waiting.iter_mut().enumerate() {
            assert!(timeout(Duration::from_millis(1), frame.room()).await.is_err());
            for (at, other) in held.iter().enumerate() {
                assert_eq!(evicted(other).await, at == oldest, "one only, the oldest");
            }
            held[oldest].end();
            let given = frame.room().await;
            assert!(frame.take(given).is_ok());
        }
        // 12 of 128 MiB are free, and those that came last have their time.
        held.drain(..3);
        held.iter_mut().for_each(Unfinished::end);
        let mut last: Vec<_> = (0..6).map(|_| begun(&room, 16 * MIB)).collect();
        assert_eq!(last.iter().filter(|frame| frame.waits()).count(), 1);
        let began = tokio::time::Instant::now();
        tokio::select! {
            _ = last[5].room() => panic!("nobody left"),
            () = waiting[0].evicted() => assert!(began.elapsed() <= LIMIT / HOLD),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_has_to_leave_for_room_that_came_back_by_itself() {
        let room = Room::new(32 * MIB);
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(begun(&room, 16 * MIB));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut waiting = Unfinished::new(room.clone(), LIMIT);
        waiting.announced(&header(32 * MIB), 32 * MIB);
        let evicted = async |frame: &Unfinished| timeout(Duration::ZERO, frame.evicted()).await.is_ok();
        tokio::select! {
            biased;
            _ = waiting.room() => panic!("nobody left"),
            () = held[0].evicted() => {}
        }
        // The other half of what it needs.
        held[7].end();
        assert!(timeout(LIMIT / HOLD, waiting.room()).await.is_err());
        for frame in &held[1..7] {
            assert!(!evicted(frame).await);
        }
        held[0].end();
        assert!(waiting.room().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_waits_while_its_client_takes_nothing_keeps_nobody_waiting() {
        let room = Room::new(128 * MIB);
        let [held, mut stuck, mut behind] = std::array::from_fn(|_| {
            let mut frame = Unfinished::new(room.clone(), LIMIT);
            frame.announced(&header(128 * MIB), 128 * MIB);
            frame
        });
        let writes = async move { stuck.while_written(std::future::pending()).await };
        let leaves = async move { held.evicted().await };
        let (written, (), given) = tokio::join!(writes, leaves, behind.room());
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(given.is_ok(), "it had to wait for the write");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_ends_during_a_write_is_told_after_it() {
        let room = Room::new(MIB);
        let (_held, mut late) = (begun(&room, 16 * MIB), Unfinished::new(room.clone(), LIMIT));
        let _rest: Vec<_> = (0..7).map(|_| begun(&room, 16 * MIB)).collect();
        late.announced(&header(MIB), MIB);
        let write = async {
            tokio::time::sleep(LIMIT * 2).await;
            Ok(())
        };
        assert!(late.while_written(write).await.is_ok());
        assert!(late.waits());
        let given = late.room().await;
        assert!(late.take(given).is_err() && !late.waits());
    }

    #[test]
    fn the_longest_frame_that_is_allowed_fits() {
        let mut frame = Unfinished::new(Room::new(1 << 30), LIMIT);
        frame.announced(&header(1 << 30), 1 << 30);
        assert!(!frame.waits());
    }
}
