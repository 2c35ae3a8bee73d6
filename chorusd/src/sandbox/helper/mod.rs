//! The daemon's program inside: what is nearest to a command, and its confinement. It has one thread until the command
//! starts, for what is done here holds for the thread that does it and those that it starts.

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

/// Does what the arguments say where they are those of a program inside; `None` where they are not.
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
        Err(format!("{HELPER_FLAG} is Chorus's own"))
    };
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            control_socket::send_report(&HelperReport::Failed(why));
            ExitCode::FAILURE
        }
    })
}

/// What failed, as it is told.
fn with_context<E: Display>(what: impl Display) -> impl FnOnce(E) -> String {
    move |why| format!("{what}: {why}")
}
