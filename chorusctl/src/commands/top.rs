//! `chorusctl top`: runs the screen with everything that happens, which is a part of the daemon's program.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::app::App;
use crate::connect::{OWN_NAME, daemon_program, spawn_error};
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
use crate::ui::terminal;

/// Show everything on one screen, and answer there
///
/// Agents and captured conversations with their state, how full the context is, cost of today, time until they are saved, the running tool;
/// approvals, tasks, Discord and the cluster. Enter opens a conversation live with a line to write in, `/` searches, `h` shows saved
/// conversations, `t` their tree, `a` the approvals, and `?` all keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  chorusctl top                  show all agents\n  \
    chorusctl top --agent docs     select one\n  \
    chorusctl --host mara@desk top show another machine")]
pub struct Args {}

pub fn run(_: &Args, app: &mut App) -> Result<(), Error> {
    if app.stdout.format() != OutputFormat::Text {
        return Err(
            Error::usage("`chorusctl top` has no JSON output").with_hint("the same as JSON: chorusctl status --json")
        );
    }
    if !terminal::can_show_full_screen() {
        return Err(Error::usage("`chorusctl top` needs a terminal that can move its cursor")
            .with_hint("show the same as text: chorusctl status"));
    }
    // Starts the daemon if none is running, and reports errors before the screen is taken.
    app.client()?;
    app.disconnect();
    let program = daemon_program();
    let mut command = Command::new(&program);
    command.arg0(OWN_NAME).arg("top");
    if app.stdout.has_color() {
        command.arg("--color");
    }
    if let Some(agent) = app.agent() {
        command.args(["--agent", &agent]);
    }
    if let Some(client) = terminal::name() {
        command.args(["--client", &client]);
    }
    if let Some(host) = app.host()? {
        command.args(["--host", &host.name]);
    }
    if let Some(socket) = &app.global.socket {
        command.arg("--socket").arg(socket);
    }
    Err(spawn_error(&program, &command.exec()))
}
