//! `chorusctl agent import`.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::Method;
use chorus_proto::methods::archive::{
    ImportAdd, ImportAddParams, ImportBegin, ImportBeginParams, ImportCommit, ImportCommitParams, ImportCommitResult,
};

use crate::app::{App, read};
use crate::commands::session::import::open;
use crate::error::{Failure, plain};
use crate::ui::out::Format;
use crate::ui::progress::Progress;
use crate::ui::words::count;
use crate::ui::{Style, safe};

/// Bytes of the file in one request.
const CHUNK: u64 = 1 << 20;

/// Make an agent from a file that `agent export` wrote
///
/// The agent comes in whole or not at all. It keeps its id and those of its sessions, unless they are taken here.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file; `-` is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// The agent's name here [default: the one it had]
    #[arg(long = "as", value_name = "NEW_NAME")]
    new_name: Option<String>,
}

/// Imports it.
///
/// # Errors
/// Why there is no such agent.
pub fn run(args: &Args, app: &mut App) -> Result<(), Failure> {
    let (mut source, size) = open(&args.file)?;
    let import = app.call::<ImportBegin>(&ImportBeginParams {})?.import;
    let mut progress = Progress::new("import".into(), !app.global.quiet);
    let mut sent = 0;
    loop {
        let mut bytes = Vec::new();
        let count = source.by_ref().take(CHUNK).read_to_end(&mut bytes);
        let count = count.map_err(|error| Failure::failed(format!("failed to read: {}", plain(&error))))?;
        if count == 0 {
            break;
        }
        app.call::<ImportAdd>(&ImportAddParams { import, data_base64: STANDARD.encode(&bytes) })?;
        sent += count as u64;
        progress.show(sent, size, "bytes");
    }
    let params = ImportCommitParams { import, name: args.new_name.clone() };
    let result =
        app.client()?.call_raw(ImportCommit::NAME, &params, &mut |at| progress.show(at.done, at.total, &at.unit));
    progress.finish();
    let result = result?;
    match app.out.format() {
        Format::Text => told(app, &read(&result)?),
        Format::Json | Format::Jsonl => app.out.json_line(&result),
    }
}

fn told(app: &mut App, result: &ImportCommitResult) -> Result<(), Failure> {
    let line = format!(
        "imported {} ({}, {} remembered)",
        app.out.paint(Style::Strong, &safe::one_line(&result.agent.name)),
        count(result.sessions, "session"),
        count(result.memories, "thing"),
    );
    app.out.done(&line)?;
    app.out.flush()?;
    if result.new_id {
        app.notes.line("its id is taken here: it has a new one");
    }
    if result.new_session_ids > 0 {
        app.notes
            .line(&format!("{} taken here: those sessions have new ones", count(result.new_session_ids, "session id")));
    }
    if result.corrupt > 0 {
        app.notes.warning(&format!(
            "{} cannot be read; `chorusctl context history` shows them",
            count(result.corrupt, "session")
        ));
    }
    for warning in &result.warnings {
        app.notes.warning(warning);
    }
    Ok(())
}
