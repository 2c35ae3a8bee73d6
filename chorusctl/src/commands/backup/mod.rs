//! `chorusctl backup`.

use std::io::{IsTerminal as _, stdout};
use std::path::{Path, PathBuf};

use chorus_proto::methods::backup::{SPECIAL, Summary, Unreadable};
use clap::Subcommand;

use crate::app::App;
use crate::error::Failure;
use crate::ui::out::Format;
use crate::ui::safe;
use crate::ui::words::{bytes, count};

mod archive;
mod create;
pub mod restore;
mod run;
pub mod verify;

/// Back up all agents, sessions, live conversations and settings
///
/// Works while the daemon runs and blocks nobody. Everything that was acknowledged before the backup began is in it. Into a
/// directory it is incremental: only what changed is copied, and the previous backup stays valid until the new one is complete. The
/// directory must be new, empty, or have a backup of the same home already, and outside the home. The backup before is kept:
/// verify and restore take DIR/manifest.previous.jsonl, too. What was deleted in the home is not in the new backup, but its copy
/// stays in the directory until --prune.
///
/// Exit status 1 if some files could not be read; everything else is backed up then. Exit status 1, too, if a database is damaged,
/// and 6 if the directory has the backup of another home; the backup before is as it was then.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The directory; `-` writes one tar archive to standard output
    #[arg(value_name = "DIR|-", value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,
    /// Delete copies of files that neither the new backup nor the one before contains
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

/// Makes a backup, checks one, or restores one.
///
/// # Errors
/// Why it did not succeed.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    match (args.verb, args.dir) {
        (Some(Verb::Verify(args)), _) => verify::run(&args, app),
        (Some(Verb::Restore(args)), _) => restore::run(&args, app),
        (None, Some(dir)) if dir == Path::new("-") => {
            if args.prune {
                return Err(Failure::usage("--prune is for a directory").hint("chorusctl backup -"));
            }
            if stdout().is_terminal() {
                return Err(
                    Failure::usage("an archive is not written to a terminal").hint("redirect it to a file or a pipe")
                );
            }
            archive::run(app)
        }
        (None, Some(dir)) => create::run(&dir, args.prune, app),
        (None, None) => Err(Failure::usage("no directory was given").hint("chorusctl backup DIR")),
    }
}

/// Tells what else a person should know; an error if something is missing.
fn tell(app: &mut App, made: &Summary) -> Result<(), Failure> {
    // Under --quiet only of what is lost: nobody misses a pipe.
    let told = |warning: &&String| !app.global.quiet || !warning.ends_with(SPECIAL);
    for warning in made.warnings.iter().filter(told) {
        app.notes.warning(warning);
    }
    for Unreadable { path, reason } in &made.unreadable {
        app.notes.warning(&format!("not in the backup: {path}: {reason}"));
    }
    match made.unreadable.len() as u64 {
        0 => Ok(()),
        missing => Err(Failure::failed(format!(
            "{} could not be read and {} not in the backup",
            count(missing, "file"),
            if missing == 1 { "is" } else { "are" }
        ))
        .hint("correct their permissions, and back up again")),
    }
}

/// The lines for a person: what was backed up, where, and whether keys are in it.
fn text(app: &mut App, made: &Summary, to: &str) -> Result<(), Failure> {
    let (agents, sessions) = (count(made.agents, "agent"), count(made.sessions, "session"));
    let changed = if made.copied_files == 0 { "nothing".into() } else { count(made.copied_files, "file") };
    let seconds = made.duration_ms as f64 / 1000.0;
    let size = bytes(made.bytes);
    app.out.done(&format!("backed up {agents}, {sessions}, {size} ({changed} changed) to {to} in {seconds:.1} s"))?;
    if made.pruned_files > 0 {
        app.out.done(&format!("deleted {} of earlier backups", count(made.pruned_files, "file")))?;
    }
    if !made.keys.is_empty() {
        app.out.done(&format!("it contains keys: {}", safe::one_line(&made.keys.join(", "))))?;
    }
    Ok(())
}

/// The result as JSON.
fn json(app: &mut App, value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::value::to_raw_value(value).map_err(chorus_proto::CallError::from)?;
    app.out.json_line(&text)
}

/// Returns true if the result goes out as JSON.
fn as_json(app: &App) -> bool {
    app.out.format() != Format::Text
}
