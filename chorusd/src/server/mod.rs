//! The server for the local socket: it decodes frames into requests, dispatches them to operations, and encodes the
//! replies. It makes no decisions of its own.

mod connection;
mod dispatch;
mod frame_budget;
mod frame_limits;
mod listener;
mod notifications;
mod reply;
mod writer;

pub use dispatch::parse_request;
pub use listener::Server;
