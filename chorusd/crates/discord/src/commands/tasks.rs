//! `/tasks`.

use chorus_base::error::{Error, Result};
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_engine::ops::tasks::{list, show, stop};
use chorus_proto::ErrorKind;
use chorus_proto::methods::tasks::{ListParams, ShowParams, StopParams, Task};

use super::command_definition::{
    AGENT_OPTION, Command, CommandOption, OptionKind, Right, Subcommand, Subcommands, required,
};
use super::invocation::Invocation;
use super::response::Response;
use super::text_format::{code_block, inline_code, inline_text, relative_time};

const TASK_OPTION: CommandOption = required("id", "ID in /tasks list, for example t12", OptionKind::Text(32));

pub(super) const COMMAND: Command = Command {
    name: "tasks",
    description: "List, show and stop background commands",
    default_permissions: None,
    subcommands: Subcommands::Many(&[
        Subcommand {
            name: "list",
            description: "List background commands, running ones first",
            run: |call| Box::pin(list(call)),
            right: Right::Read,
            private: true,
            options: &[AGENT_OPTION],
        },
        Subcommand {
            name: "show",
            description: "Show a background command",
            run: |call| Box::pin(show(call)),
            right: Right::Read,
            private: true,
            options: &[TASK_OPTION],
        },
        Subcommand {
            name: "stop",
            description: "Stop a background command",
            run: |call| Box::pin(stop(call)),
            right: Right::Change,
            private: false,
            options: &[TASK_OPTION],
        },
    ]),
};

/// Tasks that are listed: those that run, then the newest of those that ended.
const MAX_TASKS: u64 = 20;

async fn list(call: &Invocation) -> Result<Response> {
    let agent = call.caller.resolve_agent(call.args.text("agent"))?;
    let name = agent.settings.name.clone();
    let params = ListParams { agent: Some(name.clone()), limit: Some(MAX_TASKS), ..ListParams::default() };
    let ops = call.caller.ops();
    let listed = list::list(&ops.agent_resolver, &ops.store.catalog.tasks, &ops.config, params);
    let found = with_expected_agent(agent.settings.id, listed).await?;
    if found.tasks.is_empty() {
        return Ok(Response::new(format!("**{}** has no background tasks.", inline_text(call, &name, 64))));
    }
    let mut lines: Vec<String> = found.tasks.iter().map(|task| task_line(call, task)).collect();
    if found.next.is_some() {
        lines.push(format!("Only the newest {MAX_TASKS} tasks are shown."));
    }
    Ok(Response::new(lines.join("\n")))
}

fn task_line(call: &Invocation, task: &Task) -> String {
    let end = match (task.exit_code, task.signal) {
        (Some(code), _) if code != 0 => format!(" (exit code {code})"),
        (None, Some(signal)) => format!(" (signal {signal})"),
        _ => String::new(),
    };
    let (status, when) = (task.status.as_str(), relative_time(task.ended_at.unwrap_or(task.started_at)));
    format!("{} · {status}{end} {when} · {}", inline_code(call, &task.id, 32), inline_code(call, &task.command, 120))
}

/// Finds the task, if it belongs to an agent that the caller may see.
async fn find_task(call: &Invocation) -> Result<Task> {
    let id = call.args.require_text("id")?;
    let unknown = || {
        let id: String = id.chars().take(40).collect();
        Error::new(ErrorKind::NotFound, format!("No task {id:?} in this channel")).hint("list tasks: `/tasks list`")
    };
    let (ops, params) = (call.caller.ops(), ShowParams { id: id.trim().to_owned() });
    let found = match show::show(&ops.agent_resolver, &ops.store.catalog.tasks, params).await {
        Err(failure) if failure.kind == ErrorKind::NotFound => return Err(unknown()),
        found => found?,
    };
    // The error does not say that the task belongs to another agent: that would reveal that it exists.
    call.caller.resolve_agent(Some(&found.task.agent)).map_err(|_| unknown())?;
    Ok(found.task)
}

async fn show(call: &Invocation) -> Result<Response> {
    let task = find_task(call).await?;
    let started = relative_time(task.started_at);
    Ok(Response::new(format!("{}\nStarted {started}.\n{}", task_line(call, &task), code_block(call, &task.command))))
}

async fn stop(call: &Invocation) -> Result<Response> {
    let task = find_task(call).await?;
    let agent = call.caller.resolve_agent(Some(&task.agent))?;
    call.caller.audit(&agent, &format!("tasks.stop:{}", task.id), Right::Change).await?;
    let (ops, params) = (call.caller.ops(), StopParams { id: task.id });
    let done = stop::stop(&ops.agent_resolver, &ops.store.catalog.tasks, &ops.tasks, params).await?;
    let what = if done.stopped { "Stopped" } else { "Already finished" };
    Ok(Response::new(format!("{what}: {}", task_line(call, &done.task))))
}
