//! `chorusctl capture on`: turns capture on, and waits until what is there has been read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use chorus_proto::Method as _;
use chorus_proto::methods::capture::{On, OnParams, StatusResult};

use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::report;
use crate::app::{App, parse_result};
use crate::error::Error;
use crate::ui::Table;
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

/// Lets Ctrl-C say that capture continues, once it does, before it ends the program.
fn explain_interrupt(app: &App, is_on: Arc<AtomicBool>) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::failed(format!("cannot handle Ctrl-C: {error}"));
    let mut signals = Signals::new([SIGINT]).map_err(failed)?;
    let stderr = app.stderr;
    thread::Builder::new()
        .name("interrupt".into())
        .spawn(move || {
            for _ in &mut signals {
                if is_on.load(Ordering::Relaxed) {
                    // The progress bar may be on the line.
                    stderr.line("\ncapture is on and continues in the background: chorusctl capture status");
                }
                let _ = emulate_default_handler(SIGINT);
            }
        })
        .map(drop)
        .map_err(failed)
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let redact = (args.no_redact || args.redact).then_some(args.redact);
    let params = OnParams { sources: args.sources, redact };
    let mut progress = ProgressBar::new("capture".into(), &["reading"], !app.global.quiet);
    let is_on = Arc::new(AtomicBool::new(false));
    explain_interrupt(app, is_on.clone())?;
    let done = app.client()?.call_raw(On::NAME, &params, &mut |at| {
        is_on.store(true, Ordering::Relaxed);
        progress.update(at.done, at.total, &at.unit);
    });
    is_on.store(false, Ordering::Relaxed);
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
