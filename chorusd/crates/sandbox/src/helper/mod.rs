//! The helper: the daemon's program, started again inside the sandbox to confine itself and run the command. It has one
//! thread until the command starts, because most of the confinement applies to the calling thread and its descendants
//! only.

mod capabilities;
mod confine;
mod control_socket;
mod init;
mod landlock;
mod limits;
mod memory_watchdog;
mod namespaces;
mod rootfs;
mod seccomp;

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;

use super::protocol::{CONFINE_STAGE, HELPER_FLAG, HelperReport, NAMESPACES_STAGE};

/// Runs the stage that the arguments name; `None` if they are not those of a helper.
pub fn run_stage(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if args.next()? != HELPER_FLAG {
        return None;
    }
    let stage = args.next().unwrap_or_default();
    let done = if stage == NAMESPACES_STAGE {
        namespaces::run(args.next().is_some())
    } else if stage == CONFINE_STAGE {
        confine::run()
    } else {
        Err(format!("{HELPER_FLAG} is internal to Chorus"))
    };
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            control_socket::send_report(&HelperReport::Failed(why));
            ExitCode::FAILURE
        }
    })
}

/// Returns a closure for `map_err` that puts `what` in front of an error.
fn with_context<E: Display>(what: impl Display) -> impl FnOnce(E) -> String {
    move |why| format!("{what}: {why}")
}
