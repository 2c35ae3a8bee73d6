//! Coming up and going down: the home, the instance lock, the socket, watching both, the log, signals, the service manager, and
//! leaving the terminal.

pub mod detach;
pub mod fingerprint;
pub mod home;
pub mod identity;
pub mod leftover;
pub mod lock;
pub mod log;
pub mod passed;
pub mod service;
pub mod signals;
pub mod socket;
pub mod watch;
