//! New ids.

use std::cell::RefCell;
use std::time::SystemTime;

use rustix::rand::{GetRandomFlags, getrandom};
use uuid::{Builder, Uuid};

use crate::sync::Mutex;

/// Bytes that are taken from the kernel at once, enough for some sixty ids.
const POOL_BYTES: usize = 512;

/// Bits of the counter of ids within a millisecond.
const COUNTER_BITS: u32 = 42;

/// Creates an id that sorts by the wall clock, and by the order of the calls within this process. On a machine whose clock is
/// before 1970 the ids have the time 0.
#[must_use]
pub fn new_id() -> Uuid {
    new_id_at(SystemTime::now())
}

fn new_id_at(now: SystemTime) -> Uuid {
    let since = now.duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
    let (millis, counter) = LAST.lock().advance(millis);
    // RFC 9562, section 6.2, method 1: the upper bits count, the rest is random.
    let low = (counter & 0x3fff_ffff) << 32 | u64::from(random_u32());
    let mut bytes = [0; 10];
    bytes[..2].copy_from_slice(&u16::try_from(counter >> 30).unwrap_or(0).to_be_bytes());
    bytes[2..].copy_from_slice(&low.to_be_bytes());
    Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid()
}

/// Time and counter of the last id.
#[derive(Debug)]
struct LastId {
    millis: u64,
    counter: u64,
}

static LAST: Mutex<LastId> = Mutex::new(LastId { millis: 0, counter: 0 });

impl LastId {
    /// Moves on to the next id. Returns its time, which is that of the last one if the clock went back, and its counter.
    fn advance(&mut self, millis: u64) -> (u64, u64) {
        if millis <= self.millis && self.counter != 0 && self.counter + 1 < 1 << COUNTER_BITS {
            self.counter += 1;
        } else {
            // Half of the numbers are left to count on.
            self.counter = (u64::from(random_u32()) << 9 | u64::from(random_u32()) >> 23).max(1);
            self.millis = millis.max(self.millis + u64::from(millis <= self.millis && self.millis > 0));
        }
        (self.millis, self.counter)
    }
}

/// Random bytes of the kernel that are not used yet.
struct Pool {
    bytes: [u8; POOL_BYTES],
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_BYTES], used: POOL_BYTES }) };
}

/// Returns a random number that cannot be predicted.
fn random_u32() -> u32 {
    POOL.with_borrow_mut(|pool| {
        if pool.used + 4 > POOL_BYTES {
            pool.fill();
        }
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&pool.bytes[pool.used..pool.used + 4]);
        pool.used += 4;
        u32::from_ne_bytes(bytes)
    })
}

impl Pool {
    fn fill(&mut self) {
        let mut filled = 0;
        while filled < POOL_BYTES {
            match getrandom(&mut self.bytes[filled..], GetRandomFlags::empty()) {
                Ok(bytes) => filled += bytes,
                Err(rustix::io::Errno::INTR) => {}
                // A kernel without the call; the crate knows other ways.
                Err(_) => return self.fill_from_uuids(),
            }
        }
        self.used = 0;
    }

    fn fill_from_uuids(&mut self) {
        for chunk in self.bytes.chunks_mut(4) {
            // The first four bytes of a random id are random.
            chunk.copy_from_slice(&Uuid::new_v4().as_bytes()[..chunk.len()]);
        }
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_before_1970_gives_ids_all_the_same() {
        let early = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        let (one, two) = (new_id_at(early), new_id_at(early));
        assert_ne!(one, two);
        assert_eq!(one.get_version_num(), 7);
        assert!(one < new_id());
    }

    #[test]
    fn ids_sort_by_time_and_by_the_order_of_their_creation() {
        let ids: Vec<Uuid> = (0..100_000).map(|_| new_id()).collect();
        assert!(ids.is_sorted());
        let (seconds, nanos) = ids[0].get_timestamp().expect("a time").to_unix();
        let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos));
        assert!(age.is_ok_and(|age| age < Duration::from_secs(60)));
        assert_eq!(ids[0].get_variant(), uuid::Variant::RFC4122);
    }

    #[test]
    fn no_id_comes_twice_from_several_threads() {
        let ids = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| (0..20_000).map(|_| new_id()).collect::<Vec<_>>())).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<HashSet<Uuid>>()
        });
        assert_eq!(ids.len(), 80_000);
    }

    #[test]
    fn a_clock_that_goes_back_or_a_full_counter_keeps_the_order() {
        let mut last = LastId { millis: 0, counter: 0 };
        let first = last.advance(1000);
        assert_eq!(first.0, 1000);
        assert_eq!(last.advance(900), (1000, first.1 + 1));
        last.counter = (1 << COUNTER_BITS) - 1;
        let next = last.advance(1000);
        assert!(next.0 == 1001 && next.1 < 1 << (COUNTER_BITS - 1), "{next:?}");
    }
}
