//! What every other crate of the daemon may use: the error type with its hint, the requester of an action, secrets that
//! `Debug` does not show, ids, and small functions on private files and text.
//!
//! Nothing here knows of agents, sessions or the network, and nothing needs an async runtime.

#![warn(unreachable_pub)]

pub mod backoff;
mod closest_match;
mod commit_durability;
pub mod error;
pub mod hex;
mod id;
pub mod json_minify;
pub mod locale_check;
pub mod parallel;
pub mod private_fs;
pub mod private_socket;
pub mod requester;
pub mod scripts;
mod secret;
pub mod sync;
mod ticks;

pub use backoff::Backoff;
pub use closest_match::closest_match;
pub use commit_durability::Durability;
pub use error::{Error, Result};
pub use hex::hex;
pub use id::new_id;
pub use requester::Requester;
pub use secret::Secret;
pub use ticks::Ticks;
