//! What Discord asks of the store, and verbs of Discord.

pub mod commands;
mod face;

pub use face::{Discord, Face, Made, State};
