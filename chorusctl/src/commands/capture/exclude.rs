//! `chorusctl capture exclude`: leaves out a project, or transcripts.

use chorus_proto::methods::capture::{Exclude, ExcludeParams};

use crate::app::App;
use crate::commands::project;
use crate::error::Error;
use crate::ui::sanitize;

/// Leave out a project, or transcripts
///
/// Conversations that are held in the directory or below it are not captured, nor are transcripts that are there. What was captured
/// before stays; `chorusctl history --project PATH` lists it, `chorusctl session purge` deletes it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory of a project, or of transcripts
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    path: String,
    /// Capture it again
    #[arg(long)]
    remove: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let Args { path, remove } = args;
    let is_path = path.contains('/') || path == "." || path == "..";
    let path = project::absolute(&if is_path { path } else { format!("./{path}") });
    app.call_and_print::<Exclude>(&ExcludeParams { path: path.clone(), remove }, |app, _| {
        let path = sanitize::one_line(&path);
        app.stdout.status_line(&match remove {
            true => format!("capturing {path} again"),
            false => format!("not capturing {path}"),
        })
    })
}
