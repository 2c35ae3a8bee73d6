//! `chorusctl capture exclude`: leaves out a project, or transcripts.

use std::path::{Component, Path};

use chorus_proto::methods::capture::{Exclude, ExcludeParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;

/// Leave out a project, or transcripts
///
/// Conversations that are held in the directory or below it are not captured, nor are transcripts that are there. Symbolic links
/// to it, and the directory that a link leads to, count as the same. What was captured
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

/// Returns the absolute path, with its symbolic links: the daemon resolves them. `..` behind a link leads elsewhere than the text
/// says.
fn absolute(path: &str) -> String {
    let has_parent = Path::new(path).components().any(|part| part == Component::ParentDir);
    let resolved = if has_parent { std::fs::canonicalize(path) } else { std::path::absolute(path) };
    let resolved = resolved.or_else(|_| std::path::absolute(path));
    resolved.ok().and_then(|path| path.into_os_string().into_string().ok()).unwrap_or_else(|| path.to_owned())
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let Args { path, remove } = args;
    app.check_remote_path(&path)?;
    let path = if app.is_remote() { path } else { absolute(&path) };
    app.call_and_print::<Exclude>(&ExcludeParams { path: path.clone(), remove }, |app, _| {
        let path = sanitize::one_line(&path);
        app.stdout.status_line(&match remove {
            true => format!("capturing {path} again"),
            false => format!("not capturing {path}"),
        })
    })
}
