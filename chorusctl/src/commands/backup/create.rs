//! `chorusctl backup DIR`: lets the daemon back up into a directory.

use std::path::Path;

use chorus_proto::Method as _;
use chorus_proto::methods::backup::{Create, CreateParams, Summary};

use crate::app::{App, parse_result};
use crate::error::Error;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::sanitize;

/// Runs the backup into `dir` and prints the result.
pub(super) fn run(dir: &Path, prune: bool, app: &mut App) -> Result<(), Error> {
    app.refuse_host("backup DIR")?;
    let shown = sanitize::one_line(&dir.to_string_lossy());
    let absolute = std::path::absolute(dir).map_err(|error| Error::for_file(&shown, &error))?;
    let Some(path) = absolute.to_str() else {
        return Err(Error::usage(format!("{shown} is not UTF-8")).with_hint("use a directory with a UTF-8 path"));
    };
    let params = CreateParams { dir: path.to_owned(), prune };
    let advice =
        format!("the daemon completes this backup in the background; check it: chorusctl backup verify {shown}");
    let mut progress = ProgressBar::new("backup".into(), &["copying"], !app.global.quiet)
        .with_interruption(Interruption::explain(app.stderr, advice).after_report());
    let made = app.client()?.call_raw(Create::NAME, &params, &mut |at| progress.update(at.done, at.total, &at.unit));
    progress.finish();
    let raw = made?;
    let made: Summary = parse_result(&raw)?;
    if super::is_json(app) {
        app.stdout.json_line(&raw)?;
    } else {
        super::print_summary(app, &made, &shown)?;
    }
    super::print_warnings(app, &made)
}
