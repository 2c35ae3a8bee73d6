//! `chorusctl capture on`: turns capture on, and waits until what is there has been read.

use chorus_proto::Method as _;
use chorus_proto::methods::capture::{On, OnParams, StatusResult};

use super::report;
use crate::app::{App, parse_result};
use crate::error::Error;
use crate::ui::Table;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::stdout::OutputFormat;

/// Turn capture on, and save what is there
///
/// Everything that the programs still have is saved first, the newest first. If you interrupt the command, that continues in the
/// background. Secrets such as keys and tokens are redacted, unless you say --no-redact; a conversation that was saved before stays
/// redacted or not.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Programs, e.g. claude-code, codex [default: all of them]
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,
    /// Keep secrets in conversations that are captured from now on
    #[arg(long, conflicts_with = "redact")]
    no_redact: bool,
    /// Redact secrets again, after --no-redact
    #[arg(long)]
    redact: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let redact = (args.no_redact || args.redact).then_some(args.redact);
    let params = OnParams { sources: args.sources, redact };
    let advice = "capture is on and continues in the background: chorusctl capture status";
    let mut progress = ProgressBar::new("capture".into(), &["reading"], !app.global.quiet)
        .with_interruption(Interruption::explain(app.stderr, advice).after_report());
    let done = app.client()?.call_raw(On::NAME, &params, &mut |at| progress.update(at.done, at.total, &at.unit));
    progress.finish();
    let raw = done?;
    if app.stdout.format() != OutputFormat::Text {
        return app.stdout.json_line(&raw);
    }
    let status: StatusResult = parse_result(&raw)?;
    report::print(Table::new(report::COLUMNS), app, &status)?;
    let conversations: u64 = status.sources.iter().map(|source| source.conversations).sum();
    match conversations {
        0 => {
            app.stderr.hint("conversations appear in `chorusctl history` as soon as one of these programs writes them")
        }
        _ => app.stderr.hint("find one: chorusctl history, chorusctl search WORD"),
    }
    Ok(())
}
