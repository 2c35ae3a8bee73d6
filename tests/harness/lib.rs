//! What the end-to-end tests and the benches share: a sealed home, a running daemon, the command line, raw
//! connections, and waiting for a condition with a deadline.

pub mod browser;
pub mod chat;
pub mod clock;
pub mod ctl;
pub mod daemon;
pub mod data;
pub mod discord;
pub mod disk;
pub mod exported;
pub mod fuzz;
pub mod gate;
pub mod held;
pub mod home;
pub mod import;
pub mod inside;
pub mod many;
pub mod measure;
pub mod model_server;
pub mod process;
pub mod raw;
pub mod rng;
pub mod running;
pub mod schema;
pub mod scripted;
pub mod skip;
pub mod strace;
pub mod wait;

pub use clock::Hands;
pub use ctl::Output;
pub use daemon::Daemon;
pub use gate::Gate;
pub use home::{Bins, Home};
pub use inside::Inside;
pub use raw::Raw;
pub use running::Running;
pub use skip::{Need, skip, skip_without};
pub use wait::{DEADLINE, wait_until};
