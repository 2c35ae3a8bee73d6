//! `chorusctl backup verify`.

use std::ffi::OsStr;
use std::path::PathBuf;

use chorus_proto::error::exit;
use chorus_proto::methods::backup::Verified;

use super::run::chorusd;
use crate::app::{App, read};
use crate::error::Failure;
use crate::ui::words::{bytes, count};
use crate::ui::{Style, safe};

/// Check that a backup is complete and unchanged
///
/// Reads every byte and compares it with the manifest, checks both databases page by page, and compares saved sessions with the
/// index. It needs neither a daemon nor a home. Exit status 0 if nothing is damaged or missing, else 1. Sessions that were damaged
/// in the home already are only warned of.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory or archive; `-` reads an archive from standard input
    #[arg(value_name = "DIR|FILE|-", value_hint = clap::ValueHint::AnyPath)]
    source: PathBuf,
}

/// Checks it.
///
/// # Errors
/// The damage to the backup, or the reason why it cannot be checked.
pub fn run(args: &Args, app: &mut App) -> Result<(), Failure> {
    let raw = chorusd(app, "verify", [OsStr::new("--verify-backup"), args.source.as_os_str()], None)?;
    let found: Verified = read(&raw)?;
    if super::as_json(app) {
        app.out.json_line(&raw)?;
    } else {
        for problem in &found.problems {
            let damaged = app.out.paint(Style::Bad, "damaged").to_string();
            writeln!(app.out, "{damaged}  {}", safe::one_line(problem))?;
        }
        for warning in &found.warnings {
            app.notes.warning(warning);
        }
        if found.ok {
            let (agents, sessions) = (count(found.agents, "agent"), count(found.sessions, "session"));
            let (files, size) = (count(found.files, "file"), bytes(found.bytes));
            let made = app.out.clock().local(found.created_at);
            app.out.done(&format!("the backup of {made} is complete: {agents}, {sessions}, {files}, {size}"))?;
        }
    }
    if found.ok { Ok(()) } else { Err(Failure::told(exit::FAILED)) }
}
