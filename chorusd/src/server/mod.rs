//! The server for the local socket: it decodes frames into requests, dispatches them to operations, and encodes the
//! replies. It makes no decisions of its own.

mod connection;
mod dispatch;
mod elsewhere;
mod everywhere;
mod follow;
mod frame_budget;
mod frame_limits;
#[cfg(feature = "cluster")]
mod link_task;
#[cfg(feature = "cluster")]
mod links;
mod listener;
mod notifications;
#[cfg(feature = "cluster")]
mod peers;
#[cfg(feature = "cluster")]
mod remote_transfers;
mod reply;
mod writer;

pub use dispatch::parse_request;
pub use elsewhere::Elsewhere;
pub use listener::Server;
#[cfg(feature = "cluster")]
pub use peers::accept_peers;
