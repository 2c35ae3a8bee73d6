//! `chorusctl trash empty`: deletes the contents of the trash.

use chorus_proto::methods::trash::{Empty, EmptyParams, EmptyResult, List, ListParams};

use crate::app::{App, parse_result};
use crate::error::Error;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;
use crate::ui::{confirm, sanitize, terminal};

/// Permanently delete everything in the trash
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only items deleted longer ago than this, e.g. 30d
    #[arg(long, value_name = "DURATION")]
    older_than: Option<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    if !args.yes {
        confirm(args.older_than.as_deref(), app)?;
    }
    let advice = "the daemon continues in the background; what is left: chorusctl trash list";
    let progress = ProgressBar::new("trash empty".into(), &["deleting"], !app.global.quiet)
        .with_interruption(Interruption::explain(app.stderr, advice).after_report());
    let nothing = match &args.older_than {
        Some(age) => format!("nothing was moved to the trash more than {} ago", sanitize::one_line(age)),
        None => "the trash is empty".to_owned(),
    };
    let params = EmptyParams { older_than: args.older_than };
    let raw = app.call_with_progress::<Empty>(&params, progress)?;
    if app.stdout.format() != OutputFormat::Text {
        return app.stdout.json_line(&raw);
    }
    let result: EmptyResult = parse_result(&raw)?;
    match result.entries.len() {
        0 => app.stdout.status_line(&nothing),
        entries => app.stdout.status_line(&format!("permanently deleted {}", pluralize(entries as u64, "item"))),
    }
}

fn confirm(older_than: Option<&str>, app: &mut App) -> Result<(), Error> {
    if !terminal::can_prompt() {
        return Err(confirm::no_terminal_error("trash empty"));
    }
    let entries = app.call::<List>(&ListParams {})?.entries.len() as u64;
    let what = match older_than {
        None if entries == 0 => return Ok(()),
        None => format!("all {} in the trash", pluralize(entries, "item")),
        Some(age) => format!("everything that was moved to the trash more than {age} ago"),
    };
    confirm::ask("trash empty", &format!("Permanently delete {what}?"))
}
