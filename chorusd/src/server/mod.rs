//! The socket as a front door: frames to requests, requests to verbs, answers back. It decides nothing.

mod connection;
mod dispatch;
mod frame_budget;
mod incoming_frame;
mod listener;
mod progress;
mod reply;
mod writer;

pub use dispatch::parse_request;
pub use listener::Server;
