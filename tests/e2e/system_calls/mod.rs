//! P2 and P4: the daemon struck at its system calls, killed or told that a sync failed, and what is there afterwards.

mod failed_sync;
mod kill;
mod kill_during_compression;
mod kill_during_growth;
mod kill_during_moves;
mod operations;
mod shared_sync;
mod state;

use chorus_tests::Home;
use chorus_tests::rng::Rng;

/// A home whose calls are those of the operations: the search index, which can be rebuilt, would add others at any time.
fn home() -> Home {
    crate::home().without_index()
}

/// Whether to strike at every call there is, not at a sample: `CHORUS_FAULTS=all`.
pub fn all() -> bool {
    std::env::var("CHORUS_FAULTS").is_ok_and(|value| value == "all")
}

/// At most `most` of `items`, spread over all of them, others for another seed.
pub fn sample<T: Clone>(items: &[T], most: usize, rng: &mut Rng) -> Vec<T> {
    if items.len() <= most {
        return items.to_vec();
    }
    let within = |part: usize| {
        let (from, to) = (part * items.len() / most, (part + 1) * items.len() / most);
        from + rng.below((to - from) as u64) as usize
    };
    (0..most).map(within).map(|index| items[index].clone()).collect()
}
