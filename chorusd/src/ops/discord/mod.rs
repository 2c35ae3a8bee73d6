//! What Discord asks of the store, and verbs of Discord.

pub mod channels;
pub mod claims;
pub mod commands;
mod face;
pub mod identifies;
pub mod news;
pub mod outbox;
pub mod servers;
pub mod session;
pub mod troubles;

pub use claims::settle;
pub use face::{Discord, Face, Found, Made, Making, State};

pub use crate::store::catalog::discord::outbox::NewPost;
