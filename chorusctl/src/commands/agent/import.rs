//! `chorusctl agent import`: creates an agent from an archive of `agent export`.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::Method;
use chorus_proto::methods::agent_transfer::{
    ImportAdd, ImportAddParams, ImportBegin, ImportBeginParams, ImportCommit, ImportCommitParams, ImportCommitResult,
};

use crate::app::{App, parse_result};
use crate::commands::session::transcript_source::open_source;
use crate::error::{Error, os_error_text};
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;
use crate::ui::{Style, sanitize};

/// File bytes per `agent.import.add` request.
const CHUNK_BYTES: u64 = 1 << 20;

/// Create an agent from a file that `agent export` wrote
///
/// Imports the whole agent or nothing. It keeps its ID and those of its sessions, unless they are already in use here.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Name of the agent here [default: its previous name]
    #[arg(long = "as", value_name = "NEW_NAME")]
    new_name: Option<String>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let (mut source, size) = open_source(&args.file)?;
    let import = app.call::<ImportBegin>(&ImportBeginParams {})?.import;
    let advice = "the agent is imported whole or not at all; see chorusctl agent list";
    let mut progress = ProgressBar::new("import".into(), &["sending", "checking"], !app.global.quiet)
        .with_interruption(Interruption::explain(app.stderr, advice));
    let mut sent = 0;
    loop {
        let mut bytes = Vec::new();
        let count = source.by_ref().take(CHUNK_BYTES).read_to_end(&mut bytes);
        let count = count.map_err(|error| Error::failed(format!("failed to read: {}", os_error_text(&error))))?;
        if count == 0 {
            break;
        }
        app.call::<ImportAdd>(&ImportAddParams { import, data_base64: STANDARD.encode(&bytes) })?;
        sent += count as u64;
        progress.update(sent, size, "bytes");
    }
    progress.next_phase();
    let params = ImportCommitParams { import, name: args.new_name };
    let result =
        app.client()?.call_raw(ImportCommit::NAME, &params, &mut |at| progress.update(at.done, at.total, &at.unit));
    progress.finish();
    let result = result?;
    match app.stdout.format() {
        OutputFormat::Text => print_summary(app, &parse_result(&result)?),
        OutputFormat::Json | OutputFormat::Jsonl => app.stdout.json_line(&result),
    }
}

fn print_summary(app: &mut App, result: &ImportCommitResult) -> Result<(), Error> {
    let line = format!(
        "imported {} ({}, {})",
        app.stdout.style(Style::Strong, &sanitize::one_line(&result.agent.name)),
        pluralize(result.sessions, "session"),
        pluralize(result.memories, "memory"),
    );
    app.stdout.status_line(&line)?;
    app.stdout.flush()?;
    if result.new_id {
        app.stderr.line("its ID is already in use here, so it got a new one");
    }
    if result.new_session_ids > 0 {
        app.stderr.line(&format!(
            "{} already in use here, so those sessions got new ones",
            pluralize(result.new_session_ids, "session ID")
        ));
    }
    if result.corrupt > 0 {
        app.stderr
            .warning(&format!("{} unreadable; list them: chorusctl history", pluralize(result.corrupt, "session")));
    }
    for warning in &result.warnings {
        app.stderr.warning(warning);
    }
    Ok(())
}
