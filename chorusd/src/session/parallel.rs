//! Two halves of the work on a large session at the same time.

use std::panic::resume_unwind;
use std::thread;

/// Bytes below which a thread costs more than it brings.
const MIN_PARALLEL_BYTES: usize = 256 << 10;

/// Runs `other` and `here`, which both go through so many bytes; `other` on a thread of its own where they are many.
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
