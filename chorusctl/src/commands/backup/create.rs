//! `chorusctl backup DIR`.

use std::path::Path;

use chorus_proto::Method as _;
use chorus_proto::methods::backup::{Create, CreateParams, Summary};

use crate::app::{App, read};
use crate::error::Failure;
use crate::ui::progress::Progress;
use crate::ui::safe;

/// Has the daemon back up into `dir`, and shows what it did.
///
/// # Errors
/// Why there is no new backup, or what is missing in it.
pub fn run(dir: &Path, prune: bool, app: &mut App) -> Result<(), Failure> {
    let shown = safe::one_line(&dir.to_string_lossy());
    let absolute = std::path::absolute(dir).map_err(|error| Failure::file(&shown, &error))?;
    let Some(path) = absolute.to_str() else {
        return Err(Failure::usage(format!("{shown} is not UTF-8")).hint("name a directory whose path is"));
    };
    let params = CreateParams { dir: path.to_owned(), prune };
    let mut progress = Progress::new("backup".into(), !app.global.quiet);
    let made = app.client()?.call_raw(Create::NAME, &params, &mut |at| progress.show(at.done, at.total, &at.unit));
    progress.finish();
    let raw = made?;
    let made: Summary = read(&raw)?;
    if super::as_json(app) {
        app.out.json_line(&raw)?;
    } else {
        super::text(app, &made, &shown)?;
    }
    super::tell(app, &made)
}
