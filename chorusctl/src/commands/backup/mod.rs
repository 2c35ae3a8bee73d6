//! `chorusctl backup`: makes a backup; `verify` and `restore` are subcommands.

use std::io::{IsTerminal as _, stdout};
use std::path::{Path, PathBuf};

use chorus_proto::methods::backup::{SPECIAL_FILE_WARNING, Summary, Unreadable};
use clap::Subcommand;

use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::{format_bytes, pluralize};

mod archive;
mod create;
pub mod restore;
pub mod verify;

/// Back up everything; verify or restore a backup
///
/// A backup contains all agents, sessions, live conversations and settings. It runs while the daemon runs, without blocking it. Everything
/// that was acknowledged before the backup started is in it. Backups to a directory are incremental: only changes are copied, and the
/// previous backup stays valid until the new one is complete. The directory must be outside the home, and new, empty, or contain a backup
/// of the same home. The previous backup is kept: verify and restore also accept DIR/manifest.previous.jsonl. Data that was deleted in the
/// home is not in the new backup, but its copy stays in the directory until --prune.
///
/// The exit status is 1 if some files could not be read; all other files are backed up. It is also 1 if a database is damaged, and 6 if the
/// directory contains the backup of another home; in both cases the previous backup is unchanged.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Directory; `-` writes one tar archive to standard output
    #[arg(value_name = "DIR|-", value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,
    /// Delete copies of files that are in neither the new nor the previous backup
    #[arg(long)]
    prune: bool,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Verb {
    /// Check that a backup is complete and unchanged
    Verify(verify::Args),
    /// Restore a backup into an empty home
    Restore(restore::Args),
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    match (args.verb, args.dir) {
        (Some(Verb::Verify(args)), _) => verify::run(&args, app),
        (Some(Verb::Restore(args)), _) => restore::run(&args, app),
        (None, Some(dir)) if dir == Path::new("-") => {
            if args.prune {
                return Err(Error::usage("--prune needs a directory").with_hint("chorusctl backup DIR --prune"));
            }
            if stdout().is_terminal() {
                return Err(Error::usage("cannot write an archive to a terminal")
                    .with_hint("redirect the output to a file or a pipe"));
            }
            archive::run(app)
        }
        (None, Some(dir)) => create::run(&dir, args.prune, app),
        (None, None) => Err(Error::usage("no directory given").with_hint("chorusctl backup DIR")),
    }
}

/// Prints the warnings of a backup; an error if files are missing from it.
fn print_warnings(app: &mut App, made: &Summary) -> Result<(), Error> {
    // With --quiet, print only warnings about lost data: not about special files such as pipes, which hold none.
    let told = |warning: &&String| !app.global.quiet || !warning.ends_with(SPECIAL_FILE_WARNING);
    for warning in made.warnings.iter().filter(told) {
        app.stderr.warning(warning);
    }
    for Unreadable { path, reason } in &made.unreadable {
        app.stderr.warning(&format!("not in the backup: {path}: {reason}"));
    }
    match made.unreadable.len() as u64 {
        0 => Ok(()),
        missing => Err(Error::failed(format!(
            "{} could not be read and {} not in the backup",
            pluralize(missing, "file"),
            if missing == 1 { "is" } else { "are" }
        ))
        .with_hint("fix their permissions, then run the backup again")),
    }
}

/// Prints what was backed up, where, and whether it contains keys.
fn print_summary(app: &mut App, made: &Summary, to: &str) -> Result<(), Error> {
    let (agents, sessions) = (pluralize(made.agents, "agent"), pluralize(made.sessions, "session"));
    let changed = if made.copied_files == 0 { "nothing".into() } else { pluralize(made.copied_files, "file") };
    let seconds = made.duration_ms as f64 / 1000.0;
    let size = format_bytes(made.bytes);
    app.stdout.status_line(&format!(
        "backed up {agents}, {sessions}, {size} ({changed} changed) to {to} in {seconds:.1} s"
    ))?;
    if made.pruned_files > 0 {
        app.stdout.status_line(&format!("deleted {} of earlier backups", pluralize(made.pruned_files, "file")))?;
    }
    if !made.keys.is_empty() {
        app.stdout.status_line(&format!("contains keys: {}", sanitize::one_line(&made.keys.join(", "))))?;
    }
    Ok(())
}

/// Prints `value` as one line of JSON.
fn print_json(app: &mut App, value: &impl serde::Serialize) -> Result<(), Error> {
    let text = serde_json::value::to_raw_value(value).map_err(chorus_proto::CallError::from)?;
    app.stdout.json_line(&text)
}

/// Returns true if the output format is JSON or JSON lines.
fn is_json(app: &App) -> bool {
    app.stdout.format() != OutputFormat::Text
}
