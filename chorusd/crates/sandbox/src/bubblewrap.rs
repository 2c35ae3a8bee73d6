//! Translates mount steps into the arguments of bubblewrap.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::protocol::{CONFINE_STAGE, HELPER_FLAG, MountStep};

/// Path of the daemon's program inside the sandbox.
const HELPER_PATH: &str = "/.chorus-inside";

/// Returns bubblewrap's arguments, including the helper's program and its arguments.
///
/// # Errors
/// The daemon's program does not exist any more.
pub(crate) fn arguments(steps: &[MountStep], network: bool, program: &Path) -> io::Result<Vec<OsString>> {
    let mut args: Vec<OsString> = Vec::new();
    let mut add = |words: &[&dyn AsRef<std::ffi::OsStr>]| {
        args.extend(words.iter().map(|word| word.as_ref().to_owned()));
    };
    add(&[&"--unshare-user", &"--unshare-pid", &"--unshare-ipc", &"--unshare-uts", &"--unshare-cgroup-try"]);
    if !network {
        add(&[&"--unshare-net"]);
    }
    // CAP_SYS_ADMIN is needed to limit the processes, CAP_SETPCAP to give up all capabilities for good; the helper does
    // both before the command starts.
    add(&[&"--new-session", &"--as-pid-1", &"--cap-drop", &"ALL"]);
    add(&[&"--cap-add", &"CAP_SYS_ADMIN", &"--cap-add", &"CAP_SETPCAP"]);
    for step in steps {
        match step {
            MountStep::Bind { from, to, write: false } => add(&[&"--ro-bind", from, to]),
            MountStep::Bind { from, to, write: true } => add(&[&"--bind", from, to]),
            MountStep::Private { at, size } => add(&[&"--size", &size.to_string(), &"--tmpfs", at]),
            MountStep::Link { at, target } => add(&[&"--symlink", target, at]),
            MountStep::Hide { at } if at.is_dir() => add(&[&"--size", &"4096", &"--tmpfs", at, &"--remount-ro", at]),
            MountStep::Hide { at } => add(&[&"--ro-bind", &"/dev/null", at]),
            MountStep::Devices => add(&[&"--dev", &"/dev"]),
            MountStep::Processes => add(&[&"--proc", &"/proc"]),
        }
    }
    add(&[&"--ro-bind", &program.canonicalize()?, &HELPER_PATH]);
    add(&[&"--remount-ro", &"/dev", &"--remount-ro", &"/", &"--chdir", &"/"]);
    add(&[&"--", &HELPER_PATH, &HELPER_FLAG, &CONFINE_STAGE]);
    Ok(args)
}
