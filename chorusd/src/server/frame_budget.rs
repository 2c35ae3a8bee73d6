//! Room for the long frames of all connections: who has it, who waits, and who has to leave.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

/// The sum of the lengths of long frames that may be on their way at once.
const MAX_TOTAL_BYTES: usize = 128 << 20;
/// Room is counted in units of so many bytes.
const UNIT_BYTES: usize = 1 << 10;

/// Room for the long frames of all connections, given out in the order in which it was asked for.
///
/// A frame may hold its room for as long as nobody else needs it. Once another waits, the frame that has held its room for
/// longest is told to leave.
#[derive(Debug, Clone)]
pub struct FrameBudget {
    units: Arc<Semaphore>,
    total: u32,
    /// Held by the first of those that wait.
    first_in_line: Arc<tokio::sync::Mutex<()>>,
    holders: Arc<Mutex<Holders>>,
}

/// The frames that have room and were not told to leave, in the order in which they got it.
#[derive(Debug, Default)]
struct Holders {
    next: u64,
    by_age: BTreeMap<u64, Holder>,
    /// The room of all of them. What remains is free, or on its way to whoever waits.
    units: u32,
}

#[derive(Debug)]
struct Holder {
    acquired_at: Instant,
    units: u32,
    evict: Arc<Notify>,
}

/// Room of one frame. It is given back when it is dropped.
#[derive(Debug)]
pub struct FramePermit {
    number: u64,
    evict: Arc<Notify>,
    holders: Arc<Mutex<Holders>>,
    #[expect(dead_code, reason = "it is given back when it is dropped")]
    permit: OwnedSemaphorePermit,
}

impl FrameBudget {
    /// Makes room for frames of at most `longest` bytes: at least one of them fits.
    #[must_use]
    pub fn new(longest: usize) -> Self {
        let total = to_units(MAX_TOTAL_BYTES.max(longest));
        let units = Arc::new(Semaphore::new(total as usize));
        Self { units, total, first_in_line: Arc::default(), holders: Arc::default() }
    }

    /// Takes room for a frame of `length` bytes if there is enough now.
    #[must_use]
    pub fn try_acquire(&self, length: usize) -> Option<FramePermit> {
        // Whoever looks at the holders finds each that has room.
        let mut holders = self.lock_holders();
        let permit = self.units.clone().try_acquire_many_owned(to_units(length)).ok()?;
        Some(self.grant(&mut holders, permit))
    }

    /// Waits for room, in order. The frames that have held theirs for longest are told to leave, once that is `hold`.
    pub async fn acquire(self, length: usize, hold: Duration) -> FramePermit {
        let _first = self.first_in_line.lock().await;
        let units = to_units(length);
        tokio::select! {
            // It is in the queue before the holders are looked at: from then on there are no new ones.
            biased;
            Ok(permit) = self.units.clone().acquire_many_owned(units) => self.grant(&mut self.lock_holders(), permit),
            never = self.evict(units, hold) => match never {},
        }
    }

    /// Tells the oldest frames to leave as each has held its room for `hold`, until the others leave room for `units`.
    async fn evict(&self, units: u32, hold: Duration) -> Infallible {
        while let Some(due) = self.evict_due(units, hold) {
            sleep_until(due).await;
        }
        std::future::pending().await
    }

    /// Tells those to leave that have to now; answers when the next one has to, if one has.
    fn evict_due(&self, units: u32, hold: Duration) -> Option<Instant> {
        let mut holders = self.lock_holders();
        while holders.units.saturating_add(units) > self.total {
            let (number, oldest) = holders.by_age.first_key_value()?;
            let (number, due) = (*number, oldest.acquired_at + hold);
            if due > Instant::now() {
                return Some(due);
            }
            if let Some(oldest) = holders.remove(number) {
                oldest.evict.notify_one();
            }
        }
        None
    }

    fn grant(&self, holders: &mut Holders, permit: OwnedSemaphorePermit) -> FramePermit {
        let evict = Arc::new(Notify::new());
        let units = u32::try_from(permit.num_permits()).unwrap_or(u32::MAX);
        let number = holders.next;
        holders.next += 1;
        holders.units += units;
        holders.by_age.insert(number, Holder { acquired_at: Instant::now(), units, evict: evict.clone() });
        FramePermit { number, evict, holders: self.holders.clone(), permit }
    }

    fn lock_holders(&self) -> MutexGuard<'_, Holders> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holders {
    fn remove(&mut self, number: u64) -> Option<Holder> {
        let holder = self.by_age.remove(&number)?;
        self.units -= holder.units;
        Some(holder)
    }
}

impl FramePermit {
    /// Waits until the frame has to leave.
    pub fn evicted(&self) -> impl Future<Output = ()> + use<> {
        let evict = self.evict.clone();
        async move { evict.notified().await }
    }
}

impl Drop for FramePermit {
    fn drop(&mut self) {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner).remove(self.number);
    }
}

fn to_units(length: usize) -> u32 {
    u32::try_from(length.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}
