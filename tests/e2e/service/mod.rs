//! Under a service manager: it is told how the daemon is, may pass the socket, and gets a unit it understands.

mod notify;
mod passed;
mod unit;
