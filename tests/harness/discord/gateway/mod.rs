//! The gateway: sessions that outlive their connections, and the events that are dispatched to them.

mod dispatch;
mod frames;
pub mod serve;
pub mod session;
