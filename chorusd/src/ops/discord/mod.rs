//! What Discord asks of the store, and verbs of Discord.

mod face;
pub mod identifies;
pub mod session;

pub use face::{Discord, Face, Made, State};
