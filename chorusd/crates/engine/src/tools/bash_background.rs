//! Starts background tasks for the tool `bash`.

use std::ffi::OsString;

use chorus_sandbox::{CommandSpec, Confinement, ResourceLimits};

use super::ToolContext;
use super::tool::ToolOutcome;
use crate::tasks::TaskSpec;

/// Starts `command`, which was already judged and allowed, without waiting for its end.
pub(super) async fn start_command(command: String, ctx: &ToolContext) -> ToolOutcome {
    tokio::select! {
        biased;
        () = ctx.cancel.cancelled() => return ToolOutcome::error("not started: the turn was cancelled"),
        _ = ctx.services.sandbox.prepare() => {}
    }
    let argv = ["bash", "--noprofile", "--norc", "-c", &command].map(OsString::from);
    let confinement = Confinement {
        workspace: ctx.workspace(),
        network: ctx.allows_network(),
        // A background task has no time limit.
        limits: ResourceLimits { time: None, ..ResourceLimits::default() },
    };
    let job = CommandSpec { argv: argv.to_vec(), env: Vec::new(), confinement };
    let (agent, agent_name, dir) = (ctx.agent, ctx.agent_name.clone(), ctx.dir.clone());
    let (command, redactor) = (ctx.redact_for_storage(command).text, ctx.redactor.clone());
    let start = TaskSpec { agent, agent_name, dir, command, command_spec: job, redactor };
    let started = ctx.services.tasks.start(&ctx.services.sandbox, start).await;
    match started {
        Ok(row) => ToolOutcome::success(format!(
            "task {} is running in the background (pid {}). When it ends, you get a message with its exit \
             status and last lines; do not wait for it. To read its output earlier, make the command write to a \
             file in the workspace.",
            row.id, row.pid
        )),
        Err(why) => ToolOutcome::error(why),
    }
}
