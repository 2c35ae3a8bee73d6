//! The byte budget for long frames of all connections: who holds a part of it, who waits, and who must release it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::sync::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

/// The limit on the total length in bytes of long frames that are received at once.
const MAX_TOTAL_BYTES: usize = 128 << 20;
/// The semaphore counts the budget in units of this many bytes.
const UNIT_BYTES: usize = 1 << 10;

/// The byte budget for long frames of all connections, granted in the order of the requests.
///
/// A frame may hold its part as long as nobody else needs it. When another frame waits, the one that has held its part
/// longest is evicted.
#[derive(Debug, Clone)]
pub(super) struct FrameBudget {
    units: Arc<Semaphore>,
    total: u32,
    /// Held by the first waiter.
    first_in_line: Arc<tokio::sync::Mutex<()>>,
    holders: Arc<Mutex<Holders>>,
}

/// The frames that hold a part of the budget and were not evicted, in the order in which they got it.
#[derive(Debug, Default)]
struct Holders {
    next: u64,
    by_age: BTreeMap<u64, Holder>,
    /// The units of all holders. The rest is free, or about to be granted to a waiter.
    units: u32,
}

#[derive(Debug)]
struct Holder {
    acquired_at: Instant,
    units: u32,
    evict: Arc<Notify>,
}

/// The part of the budget that one frame holds. Dropping it releases the part.
#[derive(Debug)]
pub(super) struct FramePermit {
    number: u64,
    evict: Arc<Notify>,
    holders: Arc<Mutex<Holders>>,
    #[expect(dead_code, reason = "it is given back when it is dropped")]
    permit: OwnedSemaphorePermit,
}

impl FrameBudget {
    /// Creates a budget in which at least one frame of `longest` bytes fits.
    #[must_use]
    pub(super) fn new(longest: usize) -> Self {
        let total = to_units(MAX_TOTAL_BYTES.max(longest));
        let units = Arc::new(Semaphore::new(total as usize));
        Self { units, total, first_in_line: Arc::default(), holders: Arc::default() }
    }

    /// Acquires budget for a frame of `length` bytes if enough is free now.
    #[must_use]
    pub(super) fn try_acquire(&self, length: usize) -> Option<FramePermit> {
        // Locked before the permit is acquired, so that `evict_due` sees every frame that has one.
        let mut holders = self.holders.lock();
        let permit = self.units.clone().try_acquire_many_owned(to_units(length)).ok()?;
        Some(self.grant(&mut holders, permit))
    }

    /// Waits for budget, in order. Meanwhile frames that have held theirs for `hold` or longer are evicted, oldest
    /// first.
    pub(super) async fn acquire(self, length: usize, hold: Duration) -> FramePermit {
        let _first = self.first_in_line.lock().await;
        let units = to_units(length);
        tokio::select! {
            // The permit is requested before the holders are examined: from then on no new holders appear.
            biased;
            Ok(permit) = self.units.clone().acquire_many_owned(units) => self.grant(&mut self.holders.lock(), permit),
            never = self.evict(units, hold) => match never {},
        }
    }

    /// Evicts the oldest frames as each has held its budget for `hold`, until the remaining ones leave enough for
    /// `units`.
    async fn evict(&self, units: u32, hold: Duration) -> Infallible {
        while let Some(due) = self.evict_due(units, hold) {
            sleep_until(due).await;
        }
        std::future::pending().await
    }

    /// Evicts the frames that are due now. Returns when the next one is due, if another must go.
    fn evict_due(&self, units: u32, hold: Duration) -> Option<Instant> {
        let mut holders = self.holders.lock();
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
}

impl Holders {
    fn remove(&mut self, number: u64) -> Option<Holder> {
        let holder = self.by_age.remove(&number)?;
        self.units -= holder.units;
        Some(holder)
    }
}

impl FramePermit {
    /// Waits until this frame is evicted.
    pub(super) fn evicted(&self) -> impl Future<Output = ()> + use<> {
        let evict = self.evict.clone();
        async move { evict.notified().await }
    }
}

impl Drop for FramePermit {
    fn drop(&mut self) {
        self.holders.lock().remove(self.number);
    }
}

fn to_units(length: usize) -> u32 {
    u32::try_from(length.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}
