//! What Discord asks of the store, and verbs of Discord.

mod face;
pub mod outbox;

pub use face::{Discord, Face, Made, State};
