//! The gateway: sessions that outlive their connections, and what is told by them.

mod dispatch;
mod frames;
pub mod serve;
pub mod session;
