//! `chorusctl agent export`: writes an agent into a tar archive.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::Method;
use chorus_proto::methods::agent_transfer::{
    ExportBegin, ExportBeginParams, ExportBeginResult, ExportRead, ExportReadParams,
};
use serde_json::json;

use crate::app::{App, parse_result};
use crate::commands::format;
use crate::error::Error;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::{format_bytes, pluralize};
use crate::ui::{Style, sanitize};

/// Export a whole agent to one file, for another home or machine
///
/// The file contains the configuration, notes, sessions, memory and the workspace: its history, staged changes and files, except those
/// that git ignores. Unsaved messages of the live conversation are saved first; the conversation continues. The file is a plain tar
/// archive. It does not contain Discord channel IDs, task logs or git remote URLs.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Agent
    name: String,
    /// Output file; `-` writes to standard output [default: NAME.agent.tar]
    #[arg(long, short, value_name = "FILE|-")]
    output: Option<PathBuf>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let to_stdout = args.output.as_deref() == Some(Path::new("-"));
    if to_stdout && io::stdout().is_terminal() {
        return Err(Error::usage("cannot write an archive to a terminal").with_hint("use --output FILE or a pipe"));
    }
    let output = args.output.clone().unwrap_or_else(|| format!("{}.agent.tar", args.name).into());
    if args.output.is_none() && output.symlink_metadata().is_ok() {
        return Err(
            Error::usage(format!("{} already exists", output.display())).with_hint("to replace it, use --output FILE")
        );
    }
    let mut progress = ProgressBar::new(
        format!("export {}", sanitize::one_line(&args.name)),
        &["collecting", "writing"],
        !app.global.quiet,
    );
    let advice = "no archive was written; run the same command again";
    let interruption = Interruption::explain(app.stderr, advice);
    let temporary = if to_stdout { None } else { Some(temporary_path(&output)?) };
    progress = progress.with_interruption(match &temporary {
        Some(temporary) => interruption.removing(temporary.clone()),
        None => interruption,
    });
    let params = ExportBeginParams { name: args.name };
    let made =
        app.client()?.call_raw(ExportBegin::NAME, &params, &mut |at| progress.update(at.done, at.total, &at.unit));
    let made: ExportBeginResult = parse_result(&made?)?;
    progress.next_phase();
    match &temporary {
        None => copy_archive(app, &made, &mut io::stdout().lock(), &mut progress, Error::for_stdout)?,
        Some(temporary) => write_file(app, &made, (temporary, &output), &mut progress)?,
    }
    progress.finish();
    for warning in &made.warnings {
        app.stderr.warning(warning);
    }
    match app.stdout.format() {
        _ if to_stdout => Ok(()),
        OutputFormat::Text => print_summary(app, &made, &output),
        OutputFormat::Json | OutputFormat::Jsonl => {
            let (agent, sessions, memories) = (made.agent_name, made.sessions, made.memories);
            let whole = json!({
                "output": output.to_string_lossy(), "agent": agent, "size": made.size, "sessions": sessions,
                "memories": memories, "saved": made.saved, "warnings": made.warnings,
            });
            app.stdout.json(&whole.to_string())?;
            app.stdout.text("\n")
        }
    }
}

fn print_summary(app: &mut App, made: &ExportBeginResult, output: &Path) -> Result<(), Error> {
    if let Some(session) = &made.saved {
        format::print_saved(&mut app.stdout, session)?;
    }
    let line = format!(
        "exported {} to {} ({}, {}, {})",
        app.stdout.style(Style::Strong, &sanitize::one_line(&made.agent_name)),
        sanitize::one_line(&output.to_string_lossy()),
        format_bytes(made.size),
        pluralize(made.sessions, "session"),
        pluralize(made.memories, "memory"),
    );
    app.stdout.status_line(&line)
}

/// Returns the path of a temporary file beside `output`.
fn temporary_path(output: &Path) -> Result<PathBuf, Error> {
    let name = output.file_name().ok_or_else(|| {
        Error::usage(format!("{} is not a file", output.display())).with_hint("use --output with a file name")
    })?;
    Ok(directory_of(output).join(format!(".{}.{}", name.to_string_lossy(), std::process::id())))
}

fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes the archive to `temporary`, syncs it and renames it to `output`.
fn write_file(
    app: &mut App,
    made: &ExportBeginResult,
    (temporary, output): (&Path, &Path),
    progress: &mut ProgressBar,
) -> Result<(), Error> {
    let failed = |error: io::Error| Error::for_file(&output.to_string_lossy(), &error);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary);
    let mut file = file.map_err(failed)?;
    let written = copy_archive(app, made, &mut file, progress, failed).and_then(|()| {
        let placed = file.sync_all().and_then(|()| fs::rename(temporary, output));
        placed.and_then(|()| File::open(directory_of(output))?.sync_all()).map_err(failed)
    });
    if written.is_err() {
        let _ = fs::remove_file(temporary);
    }
    written
}

fn copy_archive(
    app: &mut App,
    made: &ExportBeginResult,
    out: &mut impl Write,
    progress: &mut ProgressBar,
    failed: impl Fn(io::Error) -> Error,
) -> Result<(), Error> {
    let mut params = ExportReadParams { export: made.export, offset: None };
    loop {
        let piece = app.call::<ExportRead>(&params)?;
        let bytes = STANDARD.decode(&piece.data_base64);
        let bytes = bytes.map_err(|error| Error::failed(format!("the daemon sent invalid base64: {error}")))?;
        out.write_all(&bytes).map_err(&failed)?;
        match piece.next.filter(|next| Some(*next) > params.offset) {
            Some(next) => {
                progress.update(next, made.size, "bytes");
                params.offset = Some(next);
            }
            None => return out.flush().map_err(&failed),
        }
    }
}
