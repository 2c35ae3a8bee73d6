//! `chorusctl daemon`: one module per subcommand.

pub mod install;
pub mod logs;
pub mod restart;
pub mod start;
pub mod status;
pub mod stop;
mod stop_unreachable;
mod tail;
mod unit;
pub mod wait_exit;

group! {
    /// Start, stop and watch the daemon
    enum Verb {
        /// Start the daemon
        Start(start::Args),
        /// Save every conversation and stop the daemon
        Stop(stop::Args),
        /// Stop the daemon and start it again
        Restart(restart::Args),
        /// Tell whether the daemon runs
        Status(status::Args),
        /// Show what the daemon logged
        Logs(logs::Args),
        /// Put a systemd user unit in place, so that the daemon runs from the start of the machine
        Install(install::Args),
    }
}
