//! `/schedule`: messages that the agent of the channel gets at certain times.

use chorus_base::error::{Error, Result};
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_engine::ops::schedule::{add, list, pause, remove, resume, run};
use chorus_proto::methods::schedule::{
    AddParams, ListParams, MissedRuns, PauseParams, RemoveParams, ResumeParams, RunOutcome, RunParams, Schedule,
    ScheduleState,
};

use super::command_definition::{
    AGENT_OPTION, Command, CommandOption, OptionKind, Right, Subcommand, Subcommands, optional, required,
};
use super::context::audited_agent;
use super::invocation::Invocation;
use super::response::Response;
use super::text_format::{inline_code, inline_text, relative_time};

const NAME_OPTION: CommandOption = required("name", "Name in /schedule list", OptionKind::Text(64));

pub(super) const COMMAND: Command = Command {
    name: "schedule",
    description: "Send the agent a message at certain times",
    default_permissions: None,
    subcommands: Subcommands::Many(&[
        Subcommand {
            name: "list",
            description: "List the agent's schedules",
            run: |call| Box::pin(list(call)),
            right: Right::Read,
            private: true,
            options: &[AGENT_OPTION],
        },
        Subcommand {
            name: "add",
            description: "Add a schedule; set one of cron, every and in",
            run: |call| Box::pin(add(call)),
            right: Right::Change,
            private: false,
            options: &[
                required("name", "Name of the schedule", OptionKind::Text(64)),
                required("message", "Message that the agent gets", OptionKind::Text(2000)),
                optional("cron", "Five fields: minute, hour, day, month, day of the week", OptionKind::Text(200)),
                optional("every", "Interval, for example 4h", OptionKind::Text(40)),
                optional("in", "Time until its only run, for example 20m", OptionKind::Text(40)),
                optional("tz", "Time zone of cron, for example Europe/Berlin", OptionKind::Text(64)),
                optional("missed", "How missed runs are handled", OptionKind::OneOf(&["run", "skip"])),
                AGENT_OPTION,
            ],
        },
        Subcommand {
            name: "run",
            description: "Run a schedule now, besides its times",
            run: |call| Box::pin(run(call)),
            right: Right::Change,
            private: false,
            options: &[NAME_OPTION, AGENT_OPTION],
        },
        Subcommand {
            name: "pause",
            description: "Pause a schedule",
            run: |call| Box::pin(pause(call)),
            right: Right::Change,
            private: false,
            options: &[NAME_OPTION, AGENT_OPTION],
        },
        Subcommand {
            name: "resume",
            description: "Resume a paused schedule",
            run: |call| Box::pin(resume(call)),
            right: Right::Change,
            private: false,
            options: &[NAME_OPTION, AGENT_OPTION],
        },
        Subcommand {
            name: "remove",
            description: "Remove a schedule",
            run: |call| Box::pin(remove(call)),
            right: Right::Change,
            private: false,
            options: &[NAME_OPTION, AGENT_OPTION],
        },
    ]),
};

/// Schedules that are listed.
const MAX_SCHEDULES: u64 = 25;

async fn list(call: &Invocation) -> Result<Response> {
    let agent = call.caller.resolve_agent(call.args.text("agent"))?;
    let name = agent.settings.name.clone();
    let params = ListParams { agent: Some(name.clone()), limit: Some(MAX_SCHEDULES), ..ListParams::default() };
    let ops = call.caller.ops();
    let found = with_expected_agent(agent.settings.id, list::list(&ops.schedules, &ops.config, params)).await?;
    if found.schedules.is_empty() {
        let name = inline_text(call, &name, 64);
        return Ok(Response::new(format!("**{name}** has no schedules. Add one with `/schedule add`.")));
    }
    let mut lines: Vec<String> = found.schedules.iter().map(|schedule| line(call, schedule)).collect();
    if found.next.is_some() {
        lines.push(format!("Only the first {MAX_SCHEDULES} schedules are shown."));
    }
    Ok(Response::new(lines.join("\n")))
}

/// Describes a schedule: its name, when it is due, and its message.
fn line(call: &Invocation, schedule: &Schedule) -> String {
    let when = match (&schedule.cron, schedule.every_seconds) {
        (Some(cron), _) => format!("{} {}", inline_code(call, cron, 200), inline_text(call, &schedule.time_zone, 64)),
        (None, Some(seconds)) => format!("every {} min", seconds / 60),
        (None, None) => "once".to_owned(),
    };
    let state = match (schedule.state, schedule.next_at) {
        _ if schedule.pending_at.is_some() => "running".to_owned(),
        (ScheduleState::Paused, _) => "paused".to_owned(),
        (ScheduleState::Done, _) => "done".to_owned(),
        (ScheduleState::Active, Some(next)) => relative_time(next),
        (ScheduleState::Active, None) => "suspended".to_owned(),
    };
    let last = schedule.runs.first().map(|run| match run.outcome {
        RunOutcome::Ok => " · last run ok",
        RunOutcome::Failed => " · last run failed",
        RunOutcome::Skipped => " · last run skipped",
    });
    let (name, message) = (inline_code(call, &schedule.name, 64), inline_text(call, &schedule.message, 120));
    format!("{name} · {when} · {state}{} · {message}", last.unwrap_or_default())
}

async fn add(call: &Invocation) -> Result<Response> {
    let text = |name: &str| call.args.text(name).map(|text| text.trim().to_owned());
    let (name, message) = (call.args.require_text("name")?.trim().to_owned(), call.args.require_text("message")?);
    let (every_seconds, in_seconds) = (seconds(text("every"))?, seconds(text("in"))?);
    let agent = audited_agent(call, "schedule.add").await?;
    let ops = call.caller.ops();
    let params = AddParams {
        agent: Some(agent.settings.name.clone()),
        name,
        message: ops.redactor.redact_text(message).into_owned(),
        cron: text("cron"),
        every_seconds,
        in_seconds,
        time_zone: text("tz"),
        missed: MissedRuns::parse(call.args.text("missed").unwrap_or_default()),
        dry_run: false,
    };
    let added = add::add_as(&ops.schedules, params, &call.caller.member.requester);
    let added = with_expected_agent(agent.settings.id, added).await?;
    Ok(Response::new(format!("Added: {}", line(call, &added.schedule))))
}

/// Reads a duration.
fn seconds(text: Option<String>) -> Result<Option<u64>> {
    let Some(text) = text else { return Ok(None) };
    let parsed = humantime::parse_duration(&text).map(|duration| duration.as_secs());
    parsed.map(Some).map_err(|_| {
        let text: String = text.chars().take(40).collect();
        Error::invalid(format!("{text:?} is not a duration")).hint("for example 20m or 4h")
    })
}

/// The agent of a call whose right to change is recorded, and the name of the schedule.
macro_rules! change {
    ($call:ident, $verb:literal, $params:ident, $operation:path $(, $by:expr)?) => {{
        let name = $call.args.require_text("name")?.trim().to_owned();
        let agent = audited_agent($call, concat!("schedule.", $verb)).await?;
        let params = $params { agent: Some(agent.settings.name.clone()), name };
        let done = $operation(&$call.caller.ops().schedules, params $(, $by)?);
        with_expected_agent(agent.settings.id, done).await?
    }};
}

async fn run(call: &Invocation) -> Result<Response> {
    let done = change!(call, "run", RunParams, run::run);
    Ok(Response::new(format!("Started: {}", line(call, &done.schedule))))
}

async fn pause(call: &Invocation) -> Result<Response> {
    let done = change!(call, "pause", PauseParams, pause::pause);
    let what = if done.changed { "Paused" } else { "Already paused" };
    Ok(Response::new(format!("{what}: {}", line(call, &done.schedule))))
}

async fn resume(call: &Invocation) -> Result<Response> {
    let done = change!(call, "resume", ResumeParams, resume::resume);
    let what = if done.changed { "Resumed" } else { "Not paused" };
    Ok(Response::new(format!("{what}: {}", line(call, &done.schedule))))
}

async fn remove(call: &Invocation) -> Result<Response> {
    let by = call.caller.member.requester.clone();
    let done = change!(call, "remove", RemoveParams, remove::remove_as, &by);
    Ok(Response::new(format!("Removed: {}", line(call, &done.schedule))))
}
