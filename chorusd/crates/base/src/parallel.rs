//! Runs two computations over a large session in parallel.

use std::panic::resume_unwind;
use std::thread;

/// Below this size, starting a thread costs more time than it saves.
const MIN_PARALLEL_BYTES: usize = 256 << 10;

/// Runs `other` and `here`, each of which reads `bytes` bytes of input. From 256 KiB on, `other` runs on a thread of
/// its own. A panic in `other` is passed on to the caller.
pub fn run_parallel<A: Send, B>(bytes: usize, other: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    if bytes < MIN_PARALLEL_BYTES {
        return (other(), here());
    }
    thread::scope(|scope| {
        let other = scope.spawn(other);
        let here = here();
        (other.join().unwrap_or_else(|panic| resume_unwind(panic)), here)
    })
}
