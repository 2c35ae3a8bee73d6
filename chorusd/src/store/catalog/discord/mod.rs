//! What lasts of the connection to Discord: a file for each table.

mod channels;
mod claims;
mod news;
pub mod outbox;

pub use channels::ChannelRow;
pub use claims::{Claimed, NewClaim, OpenClaim};
pub use news::News;
