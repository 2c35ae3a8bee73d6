//! Tables of the connection to Discord, one module each.

mod announcements;
mod channels;
mod claims;
mod gateway_identifies;
pub mod outbox;

pub use announcements::Announcements;
pub use channels::ChannelRow;
pub use claims::{ClaimOutcome, NewClaim, OpenClaim};
pub use gateway_identifies::IdentifyWindow;
