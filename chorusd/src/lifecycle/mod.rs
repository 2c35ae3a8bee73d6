//! Coming up and going down: the home, the instance lock, the socket, the log, signals, and leaving the terminal.

pub mod detach;
pub mod home;
pub mod lock;
pub mod log;
pub mod signals;
pub mod socket;
