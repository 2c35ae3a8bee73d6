//! The socket as a front door: frames to requests, requests to verbs, answers back. It decides nothing.

mod connection;
mod dispatch;
mod line;
mod listener;
mod meanwhile;
mod reply;
mod room;
mod unfinished;

pub use dispatch::examine;
pub use listener::Server;
