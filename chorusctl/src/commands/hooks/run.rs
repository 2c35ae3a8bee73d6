//! `chorusctl hooks run`: handles an event. It never fails and never waits long: the tool would show that, or stop.

use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use chorus_proto::methods::import::ImportFormat;
use serde::Deserialize;

use super::{Tool, past};
use crate::app::App;
use crate::commands::session::file_import::{ImportOptions, import_file_once};

/// How long the daemon may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest event that is read.
const MAX_EVENT_BYTES: u64 = 1 << 20;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[arg(value_enum)]
    tool: Tool,
    /// Save this transcript; the hook runs that in the background
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// An event as Claude Code writes it. Fields that it leaves out are empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    hook_event_name: String,
    pub(super) session_id: String,
    transcript_path: PathBuf,
    pub(super) cwd: PathBuf,
    /// Why a conversation starts: `startup`, `resume`, `clear` or `compact`.
    pub(super) source: String,
}

pub(super) fn run(args: &Args, app: &mut App) {
    let Tool::ClaudeCode = args.tool;
    app.global.no_autostart = true;
    if let Some(transcript) = &args.save {
        return save(transcript, app);
    }
    let mut text = Vec::new();
    if io::stdin().take(MAX_EVENT_BYTES).read_to_end(&mut text).is_err() {
        return;
    }
    let event: Event = serde_json::from_slice(&text).unwrap_or_default();
    match &*event.hook_event_name {
        "SessionStart" => {
            app.global.timeout = Some(ANSWER_TIMEOUT);
            if let Some(text) = past::describe(&event, app) {
                let _ = app.stdout.text(&text);
            }
        }
        "PreCompact" | "SessionEnd" if event.transcript_path.is_absolute() => save_in_background(&event, app),
        _ => {}
    }
}

/// Has another process save the transcript, which goes on when the tool has ended.
fn save_in_background(event: &Event, app: &App) {
    let (Ok(program), Ok(_)) = (std::env::current_exe(), app.paths()) else { return };
    let mut command = Command::new(program);
    if let Some(socket) = &app.global.socket {
        command.arg("--socket").arg(socket);
    }
    command.args(["hooks", "run", "claude-code", "--save"]).arg(&event.transcript_path);
    // What is imported belongs to its source.
    command
        .env_remove("CHORUS_AGENT")
        .env_remove("CHORUS_CONVERSATION")
        .env_remove("CHORUS_HOST")
        .current_dir("/")
        .process_group(0);
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

fn save(transcript: &Path, app: &mut App) {
    let options = ImportOptions {
        from: ImportFormat::ClaudeCode,
        redact: true,
        skip_known: true,
        as_capture: true,
        has_progress_bar: false,
    };
    let _ = import_file_once(app, &transcript.to_string_lossy(), options);
}
