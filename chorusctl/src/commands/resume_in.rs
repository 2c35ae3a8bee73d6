//! `chorusctl resume-in`: continues a conversation in another coding agent.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use chorus_proto::error::exit;
use serde_json::json;

use crate::app::App;
use crate::coding_tools::{self, CodingTool, Placement};
use crate::commands::session::export;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;

/// Continue a conversation in another coding agent: Claude Code, Codex, Gemini CLI or opencode
///
/// Exports the conversation as `chorusctl export --as TOOL` does, and starts the tool with it in the directory of the project. If the tool
/// already has the conversation, it continues there, with what was added since.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Tool: claude-code, codex, gemini or opencode
    #[arg(value_enum, value_name = "TOOL", hide_possible_values = true)]
    tool: CodingTool,
    /// Saved conversation, named as for `restore`; `@` is the live one
    session: String,
    /// Directory to continue in [default: that of the conversation, the agent's workspace, or the current one]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Export the conversation and print the command, but do not run it; so does --json
    #[arg(long)]
    print: bool,
    /// Further arguments of the tool
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let tool = args.tool;
    let is_run = !args.print && app.stdout.format() == OutputFormat::Text;
    let program = find_program(tool.program());
    // opencode imports the conversation itself.
    if (is_run || tool == CodingTool::Opencode) && program.is_none() {
        if let Some(file) = find_file(tool.program()) {
            let shown = file.display();
            let what = format!("{} cannot be run: {shown} is not executable", tool.title());
            return Err(Error::refused(what).with_hint(format!("make it executable: chmod +x {shown}")));
        }
        let what = format!("{} is not installed: `{}` is not in PATH", tool.title(), tool.program());
        return Err(Error::new(exit::NOT_FOUND, what).with_hint(format!("install it: {}", tool.install_command())));
    }
    let session = export::select_for_tool(app, args.session)?;
    let directory = coding_tools::find_project_dir(app, &session, args.project.as_deref())?;
    if !directory.is_dir() {
        let what = format!("the directory of the conversation does not exist: {}", directory.display());
        return Err(Error::new(exit::NOT_FOUND, what).with_hint("choose another one: --project DIR"));
    }
    let placement = match &program {
        Some(program) if tool == CodingTool::Opencode => {
            coding_tools::import_into_opencode(app, &session, &directory, program, &args.arguments)?
        }
        _ => coding_tools::place(app, &session, tool, &directory)?,
    };
    let mut command = placement.resume_command();
    command.extend(args.arguments);
    match app.stdout.format() {
        OutputFormat::Text if !is_run => {
            writeln!(app.stdout, "{}", sanitize::one_line(&coding_tools::shell_line(&directory, &command)))
        }
        OutputFormat::Text => start(app, &placement, program.unwrap_or_default(), &command),
        OutputFormat::Json | OutputFormat::Jsonl => {
            app.stdout.json(&report(&placement, &command).to_string())?;
            app.stdout.text("\n")
        }
    }
}

/// Returns what `--json` prints of a conversation in a tool.
#[must_use]
pub fn report(placement: &Placement, command: &[OsString]) -> serde_json::Value {
    let command: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    json!({
        "tool": placement.tool.format(),
        "id": placement.id,
        "file": placement.file.to_string_lossy(),
        "directory": placement.directory.to_string_lossy(),
        "new": placement.is_new,
        "command": command,
    })
}

/// Replaces this process by the tool, which so has the terminal.
fn start(app: &mut App, placement: &Placement, program: PathBuf, command: &[OsString]) -> Result<(), Error> {
    app.stdout.finish()?;
    if !app.stdout.is_quiet() {
        let what = if placement.is_new { "exported to" } else { "continuing" };
        app.stderr.line(&sanitize::one_line(&format!("{what} {}", placement.file.display())));
    }
    app.disconnect();
    let error = Command::new(&program)
        .arg0(placement.tool.program())
        .args(&command[1..])
        .current_dir(&placement.directory)
        .exec();
    let shown = program.display().to_string();
    if error.kind() == std::io::ErrorKind::NotFound && program.exists() {
        let what = format!("{shown} cannot be run: the interpreter that it names does not exist");
        return Err(Error::new(exit::NOT_FOUND, what).with_hint(format!("see its first line: head -1 {shown}")));
    }
    Err(Error::for_file(&shown, &error))
}

/// Returns the path of a file in `PATH` that has the name of a program.
fn find_file(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Returns the path of a program in `PATH`.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    find_in(&path, name)
}

fn find_in(path: &OsStr, name: &str) -> Option<PathBuf> {
    let is_program =
        |file: &Path| file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0);
    let current = std::env::current_dir().unwrap_or_default();
    // A relative entry of PATH would mean another directory for the tool.
    std::env::split_paths(path).map(|dir| current.join(dir).join(name)).find(|file| is_program(file))
}
