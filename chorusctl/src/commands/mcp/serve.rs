//! Runs the MCP server, which is a part of the daemon's program.

use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::app::App;
use crate::connect::{OWN_NAME, daemon_program, spawn_error};
use crate::error::Error;
use crate::first_agent;

/// Becomes the server; returns only if that fails.
pub(super) fn run(can_write: bool, app: &mut App) -> Result<(), Error> {
    if io::stdin().is_terminal() {
        return Err(Error::usage("`chorusctl mcp` speaks with coding tools, not with people")
            .with_hint("set it up in a tool: chorusctl mcp install claude-code"));
    }
    let program = daemon_program();
    let mut command = Command::new(&program);
    command.arg0(OWN_NAME).arg("mcp").args(["--first-agent", &first_agent::name()]);
    if let Some(agent) = app.agent() {
        command.args(["--agent", &agent]);
    }
    let options =
        [("--own", app.global.agent.is_none()), ("--no-autostart", app.global.no_autostart), ("--write", can_write)];
    command.args(options.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name));
    if let Some(conversation) = app.named_conversation() {
        command.args(["--conversation", &conversation]);
    }
    if let Some(socket) = &app.global.socket {
        command.arg("--socket").arg(socket);
    }
    Err(spawn_error(&program, &command.exec()))
}
