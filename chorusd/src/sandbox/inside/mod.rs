//! The daemon's program inside: what is nearest to a command, and its confinement. It has one thread until the command
//! starts, for what is done here holds for the thread that does it and those that it starts.

mod confine;
mod landlock;
mod limits;
mod line;
mod namespaces;
mod powers;
mod reap;
mod seccomp;
mod tree;
mod watch;

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;

use super::wire::{CONFINE, MARK, NAMESPACES, Report};

/// Does what the arguments say where they are those of a program inside; `None` where they are not.
pub fn stage(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if args.next()? != MARK {
        return None;
    }
    let stage = args.next().unwrap_or_default();
    let done = if stage == NAMESPACES {
        namespaces::run(args.next().is_some())
    } else if stage == CONFINE {
        confine::run()
    } else {
        Err(format!("{MARK} is Chorus's own"))
    };
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            line::say(&Report::Failed(why));
            ExitCode::FAILURE
        }
    })
}

/// What failed, as it is told.
fn failed<E: Display>(what: impl Display) -> impl FnOnce(E) -> String {
    move |why| format!("{what}: {why}")
}
