//! Chance.

use uuid::Uuid;

/// A number from 0 up to 1, of the randomness of a new UUID, which comes from the system.
pub fn chance() -> f64 {
    let word = (Uuid::new_v4().as_u128() >> 96) as u32;
    f64::from(word) / (f64::from(u32::MAX) + 1.0)
}
