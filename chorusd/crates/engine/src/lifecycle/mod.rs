//! Start and stop of the process: the home, the instance lock, the socket, watching both, the log, journald, signals, the service
//! manager, and detaching from the terminal.

pub mod detach;
pub mod file_identity;
pub mod fingerprint_key;
pub mod home_dir;
pub mod instance_lock;
pub mod instance_watch;
mod journald;
pub mod log;
pub mod malloc_trim;
mod program_pages;
pub mod signals;
pub mod socket;
pub mod socket_activation;
pub mod systemd_notify;
pub mod unclean_stop;
