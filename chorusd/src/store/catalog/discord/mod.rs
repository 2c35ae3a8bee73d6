//! What lasts of the connection to Discord: a file for each table.

mod channels;
mod claims;
mod identifies;
mod news;
pub mod outbox;

pub use channels::ChannelRow;
pub use claims::{Claimed, NewClaim, OpenClaim};
pub use identifies::Identifies;
pub use news::News;
