//! Shared code of the end-to-end tests and benches: isolated homes, running daemons, the command line, raw connections,
//! and waiting for conditions with a deadline.
//!
//! Helpers panic if a step fails or takes longer than [`DEADLINE`].

pub mod browser;
pub mod bulk_data;
pub mod certificates;
pub mod client_ext;
pub mod ctl;
pub mod daemon;
pub mod discord;
pub mod export_checks;
pub mod fake_daemon;
pub mod fault_proxy;
pub mod fixture;
pub mod free_port;
pub mod frozen_disk;
pub mod fuzz;
pub mod gate;
pub mod home;
pub mod http_client;
pub mod http_fault_proxy;
pub mod import;
pub mod in_process;
pub mod interactive;
pub mod manual_clock;
pub mod measure;
pub mod model_server;
pub mod otlp_collector;
pub mod pgbouncer;
pub mod postgres;
pub mod process;
pub mod program;
pub mod raw;
pub mod real_data;
pub mod redis;
pub mod rng;
pub mod s3_server;
pub mod schema;
pub mod screen;
pub mod shifted_clock;
pub mod skip;
pub mod small_disk;
pub mod ssh_server;
pub mod strace;
pub mod user_manager;
pub mod wait;
pub mod web_driver;

pub use ctl::Output;
pub use daemon::Daemon;
pub use fixture::{Fixture, RunningTurn};
pub use gate::Gate;
pub use home::{Bins, Home};
pub use in_process::InProcessDaemon;
pub use interactive::InteractiveCommand;
pub use manual_clock::ManualClock;
pub use raw::RawConnection;
pub use skip::{Need, skip, skip_without};
pub use wait::{DEADLINE, wait_until};
