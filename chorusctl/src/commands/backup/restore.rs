//! `chorusctl backup restore`.

use std::ffi::OsStr;
use std::path::PathBuf;

use chorus_proto::methods::backup::Restored;

use super::run::chorusd;
use crate::app::{App, read};
use crate::error::Failure;
use crate::ui::safe;
use crate::ui::words::{bytes, count};

/// Restore a backup into an empty home
///
/// The home must be empty or not exist, and no daemon may be running for it. The backup is checked first; if it is damaged,
/// nothing is restored. The next command starts a daemon that has everything as it was.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory or archive; `-` reads an archive from standard input
    #[arg(value_name = "DIR|FILE|-", value_hint = clap::ValueHint::AnyPath)]
    source: PathBuf,
    /// The home [default: $CHORUS_HOME, else ~/.chorus-agents]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    home: Option<PathBuf>,
}

/// Restores it.
///
/// # Errors
/// Why nothing was restored.
pub fn run(args: &Args, app: &mut App) -> Result<(), Failure> {
    let arguments = [OsStr::new("--restore-backup"), args.source.as_os_str()];
    let raw = chorusd(app, "restore", arguments, args.home.as_deref())?;
    let done: Restored = read(&raw)?;
    if super::as_json(app) {
        return super::json(app, &done);
    }
    let (agents, sessions) = (count(done.agents, "agent"), count(done.sessions, "session"));
    let (size, home) = (bytes(done.bytes), safe::one_line(&done.home));
    let made = app.out.clock().local(done.created_at);
    app.out.done(&format!("restored {agents}, {sessions}, {size}, as of {made}, to {home}"))
}
