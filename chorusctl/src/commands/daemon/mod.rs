//! `chorusctl daemon`: one module per subcommand.

pub mod dial_stdio;
pub mod install;
pub mod logs;
pub mod restart;
pub mod start;
pub mod status;
pub mod stop;
mod stop_unreachable;
mod tail;
mod units;
pub mod wait_exit;

group! {
    /// Start, stop and inspect the daemon
    enum Verb {
        /// Start the daemon
        Start(start::Args),
        /// Save every conversation and stop the daemon
        Stop(stop::Args),
        /// Restart the daemon
        Restart(restart::Args),
        /// Check whether the daemon is running
        Status(status::Args),
        /// Show the daemon's log
        Logs(logs::Args),
        /// Install a user service (systemd; on macOS launchd)
        Install(install::Args),
        /// Connect standard input and output to the daemon
        #[command(hide = true)]
        DialStdio(dial_stdio::Args),
    }
}
