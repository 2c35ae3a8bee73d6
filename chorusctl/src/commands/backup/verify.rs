//! `chorusctl backup verify`: checks that a backup is complete and unchanged.

use std::ffi::OsStr;
use std::path::PathBuf;

use chorus_proto::error::exit;
use chorus_proto::methods::backup::Verified;

use crate::app::{App, parse_result};
use crate::commands::offline_chorusd::{OfflineWork, run_chorusd};
use crate::error::Error;
use crate::ui::units::{format_bytes, pluralize};
use crate::ui::{Style, sanitize};

const VERIFY: OfflineWork = OfflineWork {
    label: "verify",
    phases: &["reading"],
    if_interrupted: "nothing was changed; run the same command again",
};

/// Check that a backup is complete and unchanged
///
/// Reads every byte and compares it with the manifest, checks both databases page by page, and compares saved sessions with the index.
/// Needs neither a daemon nor a home. The exit status is 0 if nothing is damaged or missing, otherwise 1. Sessions that were already
/// damaged in the home only cause warnings.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory or archive; `-` reads an archive from standard input
    #[arg(value_name = "DIR|FILE|-", value_hint = clap::ValueHint::AnyPath)]
    source: PathBuf,
}

pub fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("backup verify")?;
    let raw = run_chorusd(app, VERIFY, &[OsStr::new("--verify-backup"), args.source.as_os_str()], None)?;
    let found: Verified = parse_result(&raw)?;
    if super::is_json(app) {
        app.stdout.json_line(&raw)?;
    } else {
        for problem in &found.problems {
            let damaged = app.stdout.style(Style::Bad, "damaged").to_string();
            writeln!(app.stdout, "{damaged}  {}", sanitize::one_line(problem))?;
        }
        for warning in &found.warnings {
            app.stderr.warning(warning);
        }
        if found.ok {
            let (agents, sessions) = (pluralize(found.agents, "agent"), pluralize(found.sessions, "session"));
            let (files, size) = (pluralize(found.files, "file"), format_bytes(found.bytes));
            let made = app.stdout.clock().local_date_time(found.created_at);
            app.stdout.status_line(&format!("backup of {made} is complete: {agents}, {sessions}, {files}, {size}"))?;
        }
    }
    if found.ok { Ok(()) } else { Err(Error::reported(exit::FAILED)) }
}
