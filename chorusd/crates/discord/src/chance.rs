//! Random numbers.

use uuid::Uuid;

/// Returns a random number in `0.0..1.0`, taken from a new UUID, whose randomness comes from the operating system.
pub(crate) fn chance() -> f64 {
    let word = (Uuid::new_v4().as_u128() >> 96) as u32;
    f64::from(word) / (f64::from(u32::MAX) + 1.0)
}
