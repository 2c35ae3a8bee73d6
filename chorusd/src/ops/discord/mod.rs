//! What Discord asks of the store, and verbs of Discord.

pub mod commands;
mod face;
pub mod identifies;

pub use face::{Discord, Face, Made, State};
