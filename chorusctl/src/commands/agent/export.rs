//! `chorusctl agent export`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::Method;
use chorus_proto::methods::archive::{ExportBegin, ExportBeginParams, ExportBeginResult, ExportRead, ExportReadParams};
use serde_json::json;

use crate::app::{App, read};
use crate::commands::describe;
use crate::error::Failure;
use crate::ui::out::Format;
use crate::ui::progress::Progress;
use crate::ui::words::{bytes, count};
use crate::ui::{Style, safe};

/// Write a whole agent into one file, for another home or machine
///
/// Configuration, notes, sessions, what it remembers, and its workspace: history, what is staged, and its files as they are,
/// but for those that git ignores. Unsaved messages of a live conversation are saved first; the conversation goes on. The
/// file is a plain tar archive. Ids of Discord channels, logs of tasks and addresses of git remotes stay behind.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent
    name: String,
    /// The file; `-` is standard output [default: NAME.agent.tar]
    #[arg(long, short, value_name = "FILE|-")]
    output: Option<PathBuf>,
}

/// Exports it.
///
/// # Errors
/// Why there is no file.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let to_stdout = args.output.as_deref() == Some(Path::new("-"));
    if to_stdout && io::stdout().is_terminal() {
        return Err(Failure::usage("an archive does not go to a terminal").hint("--output FILE, or a pipe"));
    }
    let output = args.output.clone().unwrap_or_else(|| format!("{}.agent.tar", args.name).into());
    if args.output.is_none() && output.symlink_metadata().is_ok() {
        return Err(Failure::usage(format!("{} is there already", output.display())).hint("--output FILE replaces it"));
    }
    let mut progress = Progress::new(format!("export {}", safe::one_line(&args.name)), !app.global.quiet);
    let params = ExportBeginParams { name: args.name };
    let made = app.client()?.call_raw(ExportBegin::NAME, &params, &mut |at| progress.show(at.done, at.total, &at.unit));
    let made: ExportBeginResult = read(&made?)?;
    if to_stdout {
        copy(app, &made, &mut io::stdout().lock(), &mut progress, Failure::stdout)?;
    } else {
        into_file(app, &made, &output, &mut progress)?;
    }
    progress.finish();
    for warning in &made.warnings {
        app.notes.warning(warning);
    }
    match app.out.format() {
        _ if to_stdout => Ok(()),
        Format::Text => told(app, &made, &output),
        Format::Json | Format::Jsonl => {
            let (agent, sessions, memories) = (made.agent_name, made.sessions, made.memories);
            let whole = json!({
                "output": output.to_string_lossy(), "agent": agent, "size": made.size, "sessions": sessions,
                "memories": memories, "saved": made.saved, "warnings": made.warnings,
            });
            app.out.json(&whole.to_string())?;
            app.out.text("\n")
        }
    }
}

fn told(app: &mut App, made: &ExportBeginResult, output: &Path) -> Result<(), Failure> {
    if let Some(session) = &made.saved {
        describe::saved(&mut app.out, session)?;
    }
    let line = format!(
        "exported {} to {} ({}, {}, {} remembered)",
        app.out.paint(Style::Strong, &safe::one_line(&made.agent_name)),
        safe::one_line(&output.to_string_lossy()),
        bytes(made.size),
        count(made.sessions, "session"),
        count(made.memories, "thing"),
    );
    app.out.done(&line)
}

/// Beside its name until it is whole and on the disk.
fn into_file(app: &mut App, made: &ExportBeginResult, output: &Path, progress: &mut Progress) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::file(&output.to_string_lossy(), &error);
    let name = output
        .file_name()
        .ok_or_else(|| Failure::usage(format!("{} is no file", output.display())).hint("name the file to write"))?;
    let dir = output.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = dir.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
    let mut file = file.map_err(failed)?;
    let written = copy(app, made, &mut file, progress, failed).and_then(|()| {
        let placed = file.sync_all().and_then(|()| fs::rename(&temporary, output));
        placed.and_then(|()| File::open(dir)?.sync_all()).map_err(failed)
    });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn copy(
    app: &mut App,
    made: &ExportBeginResult,
    out: &mut impl Write,
    progress: &mut Progress,
    failed: impl Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    let mut params = ExportReadParams { export: made.export, offset: None };
    loop {
        let piece = app.call::<ExportRead>(&params)?;
        let bytes = STANDARD.decode(&piece.data_base64);
        let bytes = bytes.map_err(|error| Failure::failed(format!("the daemon sent no base64: {error}")))?;
        out.write_all(&bytes).map_err(&failed)?;
        match piece.next.filter(|next| Some(*next) > params.offset) {
            Some(next) => {
                progress.show(next, made.size, "bytes");
                params.offset = Some(next);
            }
            None => return out.flush().map_err(&failed),
        }
    }
}
