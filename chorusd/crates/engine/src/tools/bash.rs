//! The tool `bash`: runs a command in the sandbox.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use chorus_permissions::Action;
use chorus_sandbox as sandbox;
use chorus_sandbox::{CommandOutcome, CommandSpec, Exit, ResourceLimits};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ToolContext;
use super::tool::{Tool, ToolOutcome};
use crate::tasks::TaskSpec;

/// Default and maximum timeout of a command, in seconds.
const DEFAULT_TIMEOUT_SECS: u64 = 120;
const MAX_TIMEOUT_SECS: u64 = 600;

pub(super) struct Bash;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    command: String,
    /// In seconds, default 120.
    #[serde(default)]
    #[schemars(range(min = 1, max = 600))]
    timeout: Option<u64>,
    /// For long-running commands: no timeout; you get a message when it ends.
    #[serde(default)]
    background: bool,
}

impl Tool for Bash {
    const NAME: &'static str = "bash";
    const DESCRIPTION: &'static str = "\
        Runs a command with `bash -c` in the workspace and returns its output and exit status. Each call is a \
        new shell: directory, variables and processes do not persist, only files in the workspace do. No \
        terminal, no standard input.";
    const USES_WORKSPACE: bool = true;
    type Params = Params;

    fn action(params: &Params, _: &ToolContext) -> Result<String, String> {
        if params.command.trim().is_empty() {
            return Err("the command is empty; pass a command".into());
        }
        // Arguments of programs end at a NUL: the command that runs would differ from the one that was judged.
        if params.command.contains('\0') {
            return Err("the command contains a NUL character; remove it".into());
        }
        if params.background && params.timeout.is_some() {
            return Err("background commands have no timeout; remove `timeout` or `background`".into());
        }
        if params.timeout.is_some_and(|timeout| !(1..=MAX_TIMEOUT_SECS).contains(&timeout)) {
            return Err(format!("timeout must be from 1 to {MAX_TIMEOUT_SECS} seconds"));
        }
        Ok(Action::Bash { command: &params.command }.to_string())
    }

    fn not_covered_by_always(params: &Params) -> Option<&'static str> {
        params.background.then_some(
            "permanent approvals only apply to foreground commands; a background command needs approval each time",
        )
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        if params.background {
            return start_in_background(params.command, &ctx).await;
        }
        let _command = match ctx.start_command().await {
            Ok(command) => command,
            Err(why) => return ToolOutcome::error(why),
        };
        let timeout = Duration::from_secs(params.timeout.unwrap_or(DEFAULT_TIMEOUT_SECS));
        let limits = ResourceLimits { time: Some(timeout), ..ResourceLimits::default() };
        let job = match command_spec(&params.command, &ctx, limits).await {
            Ok(job) => job,
            Err(why) => return ToolOutcome::error(why),
        };
        match sandbox::run_redacted(&ctx.services.sandbox, &job, &ctx.cancel, ctx.redactor.as_ref()).await {
            Ok(ran) => format_outcome(ran, timeout),
            Err(e) => ToolOutcome::error(format!("cannot run the command: {e}")),
        }
    }
}

/// Returns the command as it runs in the sandbox.
async fn command_spec(command: &str, ctx: &ToolContext, limits: ResourceLimits) -> Result<CommandSpec, String> {
    let argv = ["bash", "--noprofile", "--norc", "-c", command].map(Into::into).into();
    let confinement = ctx.confinement(ctx.allows_network(), limits).await?;
    Ok(CommandSpec { argv, env: Vec::new(), confinement })
}

/// Starts `command`, which was already judged and allowed, without waiting for its end.
async fn start_in_background(command: String, ctx: &ToolContext) -> ToolOutcome {
    tokio::select! {
        biased;
        () = ctx.cancel.cancelled() => return ToolOutcome::error("not started: the turn was cancelled"),
        _ = ctx.services.sandbox.prepare() => {}
    }
    let guard = match ctx.start_command().await {
        Ok(guard) => guard,
        Err(why) => return ToolOutcome::error(why),
    };
    // A background task has no time limit.
    let limits = ResourceLimits { time: None, ..ResourceLimits::default() };
    let job = match command_spec(&command, ctx, limits).await {
        Ok(job) => job,
        Err(why) => return ToolOutcome::error(why),
    };
    let (agent, agent_name, dir) = (ctx.agent, ctx.agent_name.clone(), ctx.dir.clone());
    let (command, redactor) = (ctx.redact_for_storage(command).text, ctx.redactor.clone());
    let conversation = ctx.conversation;
    let start = TaskSpec { agent, conversation, agent_name, dir, command, command_spec: job, redactor, guard };
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

/// Returns the output, followed by a line such as `[exit status N]`.
fn format_outcome(ran: CommandOutcome, timeout: Duration) -> ToolOutcome {
    let mut text = ran.output;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = match ran.exit {
        _ if ran.cancelled => write!(text, "[cancelled: all its processes were killed]"),
        Exit::Code(code) => write!(text, "[exit status {code}]"),
        Exit::Signal(signal) => write!(text, "[killed by signal {signal}]"),
        Exit::Memory => write!(
            text,
            "[out of memory: its processes exceeded {} GiB in total and were killed]",
            ResourceLimits::default().memory >> 30
        ),
        Exit::TimedOut => write!(text, "[timed out after {} s: all its processes were killed]", timeout.as_secs()),
    };
    ToolOutcome::Completed { text, is_error: ran.cancelled || ran.exit != Exit::Code(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_says_how_it_ended() {
        let ran = |exit, output: &str, cancelled| {
            let ToolOutcome::Completed { text, is_error } =
                format_outcome(CommandOutcome { exit, output: output.into(), cancelled }, Duration::from_secs(7))
            else {
                panic!("the turn goes on");
            };
            (text, is_error)
        };
        assert_eq!(ran(Exit::Code(0), "", false), ("[exit status 0]".into(), false));
        assert_eq!(ran(Exit::Code(3), "no", false), ("no\n[exit status 3]".into(), true));
        assert_eq!(ran(Exit::Signal(9), "x\n", false), ("x\n[killed by signal 9]".into(), true));
        let (text, is_error) = ran(Exit::TimedOut, "", false);
        assert!(text.starts_with("[timed out after 7 s") && is_error);
        assert!(ran(Exit::Signal(15), "", true).0.contains("[cancelled"));
    }
}
