//! Runs `chorusd` as a child process for work that needs no running daemon: to verify or restore a backup, or to copy the store.
//! chorusctl itself links no database.

use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use chorus_proto::CallError;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::app::App;
use crate::connect;
use crate::error::Error;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgressLine {
    /// The phase, counted from 0.
    #[serde(default)]
    phase: usize,
    done: u64,
    total: u64,
    /// Bytes by default.
    unit: Option<String>,
}

/// Work of `chorusd`, as a person sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfflineWork {
    /// Label of the progress bar.
    pub label: &'static str,
    /// The phases, in the order in which `chorusd` counts them.
    pub phases: &'static [&'static str],
    /// Says what is true after an interruption, and how to continue.
    pub if_interrupted: &'static str,
}

/// Runs `chorusd` with `arguments`, for `home` if one is given. Shows the progress that it prints, and returns its last line, the
/// result. It ends with this program.
pub(super) fn run_chorusd(
    app: &App,
    work: OfflineWork,
    arguments: &[impl AsRef<OsStr>],
    home: Option<&Path>,
) -> Result<Box<RawValue>, Error> {
    let program = connect::daemon_program();
    let mut command = Command::new(&program);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(home) = home {
        command.env("CHORUS_HOME", home).env_remove("CHORUS_SOCKET");
    } else if let Some(socket) = &app.global.socket {
        command.arg("--socket").arg(socket);
    }
    let broken =
        |error: io::Error| Error::failed(format!("{}: {}", program.display(), crate::error::os_error_text(&error)));
    let interruption = Interruption::explain(app.stderr, work.if_interrupted);
    let mut child = interruption.spawn(&mut command).map_err(|error| connect::spawn_error(&program, &error))?;
    let mut progress =
        ProgressBar::new(work.label.to_owned(), work.phases, !app.global.quiet).with_interruption(interruption);
    let mut phase = 0;
    let mut last = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.map_err(broken)?;
            match serde_json::from_str::<ProgressLine>(&line) {
                Ok(step) => {
                    while phase < step.phase {
                        progress.next_phase();
                        phase += 1;
                    }
                    progress.update(step.done, step.total, step.unit.as_deref().unwrap_or("bytes"));
                }
                Err(_) => last = line,
            }
        }
    }
    let mut complaint = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_end(&mut complaint).map_err(broken)?;
    }
    progress.finish();
    let status = child.wait().map_err(broken)?;
    if !status.success() {
        return Err(connect::program_error(&program, status, &complaint));
    }
    RawValue::from_string(last).map_err(|error| CallError::Malformed(error).into())
}
