//! What Discord asks of the store, and verbs of Discord.

mod face;
pub mod identifies;

pub use face::{Discord, Face, Made, State};
