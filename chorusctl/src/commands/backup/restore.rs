//! `chorusctl backup restore`: restores a backup into an empty home.

use std::ffi::OsStr;
use std::path::PathBuf;

use chorus_proto::methods::backup::Restored;

use crate::app::{App, parse_result};
use crate::commands::offline_chorusd::{OfflineWork, run_chorusd};
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::units::{format_bytes, pluralize};

const RESTORE: OfflineWork = OfflineWork {
    label: "restore",
    phases: &["reading"],
    if_interrupted: "the home is restored whole or not at all; run the same command again",
};

/// Restore a backup to an empty home
///
/// The home must be empty or not exist, and no daemon may use it. The backup is verified first; nothing is restored from a damaged one.
/// The next command starts a daemon with the restored data.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory or archive; `-` reads an archive from standard input
    #[arg(value_name = "DIR|FILE|-", value_hint = clap::ValueHint::AnyPath)]
    source: PathBuf,
    /// Home [default: $CHORUS_HOME or ~/.chorus-agents]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    home: Option<PathBuf>,
}

pub fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("backup restore")?;
    let arguments = [OsStr::new("--restore-backup"), args.source.as_os_str()];
    let raw = run_chorusd(app, RESTORE, &arguments, args.home.as_deref())?;
    let done: Restored = parse_result(&raw)?;
    if super::is_json(app) {
        return super::print_json(app, &done);
    }
    let (agents, sessions) = (pluralize(done.agents, "agent"), pluralize(done.sessions, "session"));
    let (size, home) = (format_bytes(done.bytes), sanitize::one_line(&done.home));
    let made = app.stdout.clock().local_date_time(done.created_at);
    app.stdout.status_line(&format!("restored {agents}, {sessions}, {size}, as of {made}, to {home}"))
}
