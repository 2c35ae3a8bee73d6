//! Exports sessions as files that other coding agents continue.

use std::path::Path;

use serde_json::json;

use super::{Args, ToolSession, fetch_pieces, select_sessions};
use crate::app::App;
use crate::coding_tools::{self, CodingTool};
use crate::commands::resume_in;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;

/// Writes each session to where the tool looks for its conversations, or a single one to `--output`.
pub(super) fn export(args: Args, app: &mut App, tool: CodingTool) -> Result<(), Error> {
    if args.sessions.is_empty() {
        return Err(Error::usage(format!("name the sessions to continue in {}", tool.title()))
            .with_hint(format!("for example: chorusctl export latest --as {}", tool.format().as_str())));
    }
    let project = args.project.clone();
    // Its conversations are in a database.
    let default = (tool == CodingTool::Opencode).then(|| "-".into());
    let output = args.output.clone().or(default);
    if output.is_some() && args.sessions.len() > 1 {
        return Err(Error::usage("one file or pipe takes one session").with_hint("export them one after the other"));
    }
    let sessions: Vec<ToolSession> = select_sessions(args, app)?;
    let mut written = Vec::new();
    for session in sessions {
        let directory = coding_tools::find_project_dir(app, &session, project.as_deref())?;
        match &output {
            Some(output) => export_to(app, &session, tool, &directory, output)?,
            None => {
                let placement = coding_tools::place(app, &session, tool, &directory)?;
                print_placement(app, &session, &placement)?;
                written.push(resume_in::report(&placement, &placement.resume_command()));
            }
        }
    }
    if app.stdout.format() == OutputFormat::Text || output.is_some() {
        return Ok(());
    }
    app.stdout.json(&json!({"conversations": written}).to_string())?;
    app.stdout.text("\n")
}

fn print_placement(app: &mut App, session: &ToolSession, placement: &coding_tools::Placement) -> Result<(), Error> {
    if app.stdout.format() != OutputFormat::Text {
        return Ok(());
    }
    let file = placement.file.display();
    let line = match placement.is_new {
        true => format!("exported {} to {file}", session.base.describe()),
        false => format!("{} has it already: {file}", placement.tool.title()),
    };
    app.stdout.status_line(&sanitize::one_line(&line))?;
    let command = coding_tools::shell_line(&placement.directory, &placement.resume_command());
    app.stdout.status_line(&sanitize::one_line(&format!("continue it: {command}")))
}

/// Writes a session to a file that does not exist yet, or to standard output.
fn export_to(
    app: &mut App,
    session: &ToolSession,
    tool: CodingTool,
    directory: &Path,
    output: &Path,
) -> Result<(), Error> {
    let id = session.own_id(tool).unwrap_or_else(|| tool.new_id(session, 0));
    let target = tool.target(&id, directory, &[]);
    let is_stdout = output == Path::new("-");
    if !is_stdout && output.symlink_metadata().is_ok() {
        return Err(Error::usage(format!("{} exists", output.display())).with_hint("choose another name"));
    }
    let mut text = String::new();
    fetch_pieces(app, &session.base, tool.format(), Some(target), |piece| {
        match piece {
            Some(piece) => text.push_str(piece),
            None => text.clear(),
        }
        Ok(())
    })?;
    if is_stdout {
        return app.stdout.json(&text);
    }
    super::write_output(output, text.as_bytes())?;
    let size = pluralize(session.base.message_count.unwrap_or_default(), "message");
    if app.stdout.format() == OutputFormat::Text {
        let line = format!("exported {} ({size}) as {} to {}", session.base.session_id, tool.title(), output.display());
        return app.stdout.status_line(&sanitize::one_line(&line));
    }
    app.stdout.json(&json!({"written": [output.to_string_lossy()], "unchanged": 0}).to_string())?;
    app.stdout.text("\n")
}
