//! `chorusctl status`: prints the daemon and its agents. Shell prompts run it often, so it shows no local times:
//! loading the time zone would take longer than everything else.

use chorus_proto::methods::conversations::Conversation;
use chorus_proto::methods::daemon::{
    AgentTotals, DaemonInfo, DiscordInfo, DiscordState, McpServerInfo, McpServerState, SandboxInfo, Status,
    StatusParams, StatusResult,
};
use chorus_proto::methods::search::SearchIndexState;
use chorus_proto::methods::tasks::{List, ListParams, TaskStatus};
use chorus_proto::{Agent, AgentState, CallError, ContextInfo, ErrorKind};

use crate::app::App;
use crate::commands::{agent_details, approvals, conversations, format, search};
use crate::error::Error;
use crate::no_answer;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::{self, pluralize};
use crate::ui::{Cell, Column, Stdout, Style, Table, TableArgs, sanitize, time};
use crate::version_difference;

/// Maximum number of agents in the text output.
const MAX_AGENTS: u64 = 50;

/// Narrowest terminal on which the table shows how full contexts are as bars.
const MIN_METER_WIDTH: usize = 100;
const METER_COLUMNS: usize = 11;

/// Show the daemon and its agents
///
/// Agents with a live conversation come first; its other live ones are below it. Text output shows at most 50 agents; `agent list` and --json show all. For one agent, it
/// also shows the model, the permission profile, why the agent does not answer, and the notes of its conversation.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Only this agent
    #[arg(value_name = "AGENT", id = "only")]
    agent: Option<String>,
    #[command(flatten)]
    table: TableArgs,
}

const COLUMNS: [Column; 7] = [
    Column::new("AGENT"),
    Column::new("NODE").optional(),
    Column::new("STATE"),
    Column::new("MESSAGES").align_right().optional(),
    Column::new("WINDOW").align_right().optional(),
    Column::new("AUTO-SAVE").whole().optional(),
    Column::new("LAST SESSION").flexible(),
];

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.answer_limit = Some(no_answer::PATIENCE);
    let mut table = Table::with_args(COLUMNS, &args.table, app.stdout.format())?;
    table.limit_rows(usize::try_from(MAX_AGENTS).unwrap_or(usize::MAX));
    let agent = args.agent.or_else(|| app.global.agent.clone());
    let only = agent.is_some();
    if app.stdout.format() != OutputFormat::Text {
        return app.call_and_print::<Status>(&StatusParams { agent, limit: None }, |_, _| Ok(()));
    }
    let status = match agent {
        Some(agent) => app.call::<Status>(&StatusParams { agent: Some(agent), limit: None })?,
        None if args.table.rows.needs_all_rows() => app.call::<Status>(&StatusParams::default())?,
        None => fetch_status(app, MAX_AGENTS)?,
    };
    print_status(table, &mut app.stdout, &status)?;
    version_difference::warn(&status.daemon.version, app);
    if only && status.tasks.running > 0 {
        print_running_tasks(app, &status)?;
    }
    if let Some(agent) = status.agents.first().filter(|_| only) {
        agent_details::print(app, agent)?;
    }
    if status.agents.is_empty() {
        app.stdout.flush()?;
        app.stderr.line("no agents yet");
        app.stderr.hint("start a conversation: chorusctl chat (or keep those of other tools: chorusctl capture on)");
    }
    Ok(())
}

/// Requests the status with at most `limit` agents. Daemons of earlier releases reject `limit`; they are asked again
/// without it.
pub fn fetch_status(app: &mut App, limit: u64) -> Result<StatusResult, Error> {
    Ok(try_fetch_status(app, limit)??)
}

/// As [`fetch_status`], with the error of the daemon.
pub fn try_fetch_status(app: &mut App, limit: u64) -> Result<Result<StatusResult, CallError>, Error> {
    app.within_answer_limit(|client| match client.call::<Status>(&StatusParams { agent: None, limit: Some(limit) }) {
        Err(CallError::Rpc(error)) if error.kind() == ErrorKind::InvalidParams => {
            client.call::<Status>(&StatusParams::default())
        }
        answer => answer,
    })
}

/// Formats `chorusd 0.1.0 · pid 4711 · up 3 h 12 min · 14 MiB`.
#[must_use]
pub fn daemon_line(out: &Stdout, daemon: &DaemonInfo) -> String {
    format!(
        "{} · pid {} · up {} · {} · {}",
        out.style(Style::Strong, &format!("chorusd {}", sanitize::one_line(&daemon.version))),
        daemon.pid,
        time::format_two_units(daemon.uptime_s),
        units::format_bytes(daemon.rss_bytes),
        pluralize(daemon.connections, "connection"),
    )
}

/// Formats `ok (details: chorusctl doctor)`, or the mechanism and what is missing.
fn describe_sandbox(sandbox: &SandboxInfo) -> String {
    if sandbox.missing.is_empty() {
        return "ok (details: chorusctl doctor)".to_owned();
    }
    format!("{}; missing: {}", sanitize::one_line(&sandbox.way), sanitize::one_line(&sandbox.missing.join(", ")))
}

/// Formats the state of the Discord connection, for example `connected, 2 servers`; `None` if there is nothing to say.
fn describe_discord(out: &mut Stdout, info: &DiscordInfo) -> Option<String> {
    let why = info.why.as_deref().map(|why| format!(": {}", sanitize::one_line(why))).unwrap_or_default();
    let next = info.until.map(|at| format!("; retry in {}", out.clock().until(at))).unwrap_or_default();
    let hint = info.hint.as_deref().map(|hint| format!(" ({})", sanitize::one_line(hint))).unwrap_or_default();
    if info.connected {
        return Some(format!("connected, {}{why}{hint}", pluralize(info.guilds, "server")));
    }
    match info.state? {
        // Older daemons send no reason.
        DiscordState::Off => info.why.as_ref().map(|_| format!("off{why}")),
        DiscordState::Connecting => Some("connecting".to_owned()),
        DiscordState::Connected | DiscordState::Waiting => Some(format!("not connected{why}{next}")),
        DiscordState::Stopped => Some(format!("stopped{why}{hint}")),
    }
}

/// Describes an MCP server with its state.
fn describe_server(server: &McpServerInfo) -> String {
    let state = match server.state {
        McpServerState::Idle => "not needed yet".to_owned(),
        McpServerState::Starting => "starting".to_owned(),
        McpServerState::Running => pluralize(server.tools, "tool"),
        McpServerState::Failed => {
            format!("not running: {}", sanitize::one_line(server.error.as_deref().unwrap_or("unknown reason")))
        }
        McpServerState::Stopped => "stopped".to_owned(),
    };
    format!("{} ({state})", sanitize::one_line(&server.name))
}

fn print_status(mut table: Table, out: &mut Stdout, status: &StatusResult) -> Result<(), Error> {
    let first = daemon_line(out, &status.daemon);
    writeln!(out, "{first}")?;
    writeln!(out, "home {}", sanitize::one_line(&status.daemon.home))?;
    if let Some(sandbox) = &status.daemon.sandbox {
        writeln!(out, "sandbox {}", describe_sandbox(sandbox))?;
    }
    if status.tasks.running + status.tasks.finished > 0 {
        writeln!(out, "tasks {} running, {} finished", status.tasks.running, status.tasks.finished)?;
    }
    if let Some(text) = describe_discord(out, &status.discord) {
        writeln!(out, "Discord {text}")?;
    }
    if status.models.available > 0 {
        writeln!(out, "{} available", pluralize(status.models.available, "model"))?;
    }
    if let Some(line) = status.search.and_then(indexed_line) {
        writeln!(out, "{line}")?;
    }
    if let Some(line) = status.search_model.as_ref().and_then(search::model::progress_line) {
        writeln!(out, "{line}")?;
    }
    if !status.mcp.is_empty() {
        let servers: Vec<String> = status.mcp.iter().map(describe_server).collect();
        writeln!(out, "MCP {}", servers.join(", "))?;
    }
    let shown = || status.agents.iter().map(|agent| agent.approvals).sum();
    let waiting = status.totals.map_or_else(shown, |totals| totals.approvals);
    if waiting > 0 {
        writeln!(out, "{}", approvals::format::format_waiting(waiting))?;
    }
    if status.agents.is_empty() {
        return Ok(());
    }
    let are_all_shown = status.totals.and_then(|totals| hidden_agents_line(totals, &status.agents)).is_none();
    if let Some(line) = used_today_line(&status.agents).filter(|_| are_all_shown) {
        writeln!(out, "{line}")?;
    }
    out.text("\n")?;
    for agent in &status.agents {
        table.add_row(agent_row(out, agent));
        for live in &agent.conversations {
            table.add_row_below(conversation_row(out, live));
        }
    }
    table.write(out)?;
    match status.totals.and_then(|totals| hidden_agents_line(totals, &status.agents)) {
        Some(line) => writeln!(out, "{line}"),
        None => Ok(()),
    }
}

/// Formats `search index 80 % (964 of 1,205 conversations)`; `None` if next to nothing is missing.
fn indexed_line(index: SearchIndexState) -> Option<String> {
    // Until it was compared with the catalog, there is nothing to tell.
    let percent = index.percent_indexed().filter(|_| index.total > 0)?;
    let (indexed, total) = (units::group_digits(index.indexed), units::group_digits(index.total));
    Some(format!("search index {percent} % ({indexed} of {total} conversations)"))
}

/// Formats `used today 45k tokens, $0.12 (details: chorusctl usage)`; `None` if the agents that are shown used nothing.
fn used_today_line(agents: &[Agent]) -> Option<String> {
    let today = agents.iter().filter_map(|agent| agent.today.as_ref());
    let (tokens, cost) = today.fold((0, None), |(tokens, cost), used| {
        (tokens + used.tokens, used.cost_usd.map_or(cost, |usd| Some(cost.unwrap_or(0.0) + usd)))
    });
    let cost = cost.map(|cost: f64| format!(", {}", units::format_dollars(cost))).unwrap_or_default();
    (tokens > 0).then(|| format!("used today {}{cost} (details: chorusctl usage)", units::format_token_count(tokens)))
}

/// Formats `and 9,940 idle (all: chorusctl agent list)`; `None` if all agents are shown.
fn hidden_agents_line(totals: AgentTotals, shown: &[Agent]) -> Option<String> {
    let active = shown.iter().filter(|agent| agent.state == AgentState::Active).count() as u64;
    let idle = shown.len() as u64 - active;
    let rest = [(totals.active.saturating_sub(active), "active"), (totals.idle.saturating_sub(idle), "idle")];
    let parts: Vec<_> =
        rest.iter().filter(|(n, _)| *n > 0).map(|(n, state)| format!("{} {state}", units::group_digits(*n))).collect();
    (!parts.is_empty()).then(|| format!("and {} (all: chorusctl agent list)", parts.join(", ")))
}

/// Prints the running tasks of the one agent that is shown.
fn print_running_tasks(app: &mut App, status: &StatusResult) -> Result<(), Error> {
    let agent = status.agents.first().map(|agent| agent.name.clone());
    let params = ListParams { agent, limit: Some(status.tasks.running), ..Default::default() };
    let tasks = app.call::<List>(&params)?.tasks;
    app.stdout.text("\nRunning tasks:\n")?;
    for task in tasks.iter().filter(|task| task.status == TaskStatus::Running) {
        let since = app.stdout.clock().ago(task.started_at);
        let (id, command) = (sanitize::one_line(&task.id), sanitize::one_line(&task.command));
        writeln!(app.stdout, "  [{id}] {command} (running, started {since}, pid {})", task.pid)?;
    }
    Ok(())
}

/// Returns the row of a conversation below that of its agent: its messages, and who has it open.
fn conversation_row(out: &mut Stdout, conversation: &Conversation) -> Vec<Cell> {
    let mut cells = vec![format!("  {}", sanitize::one_line(&conversation.name)).into(), Cell::default()];
    cells.push(match &conversation.turn {
        Some(turn) => format::running_cell(turn),
        None => format::state_cell(AgentState::Active),
    });
    cells.extend(context_cells(out, conversation.context.as_ref()));
    cells.push(conversations::open_in(&conversation.attached).into());
    cells
}

/// Returns the cells with the size of a context and its deadline.
fn context_cells(out: &mut Stdout, context: Option<&ContextInfo>) -> [Cell; 3] {
    let Some(context) = context else { return Default::default() };
    let until =
        context.idle_deadline_at.map(|at| Cell::from(format!("in {}", out.clock().until(at))).sorted_by_time(at));
    // A bar beside the numbers, if the terminal is wide enough for both.
    let has_bar = out.width().is_some_and(|width| width >= MIN_METER_WIDTH);
    let size = |meter| {
        let bar = format::context_meter(meter, METER_COLUMNS).filter(|_| has_bar);
        let size = format::short_prompt_size(meter);
        Cell::from(bar.map_or_else(|| size.clone(), |bar| format!("{size} {bar}"))).sorted_by(meter.used as f64)
    };
    [
        context.messages.to_string().into(),
        context.meter.as_ref().map(size).unwrap_or_default(),
        until.unwrap_or_default(),
    ]
}

fn agent_row(out: &mut Stdout, agent: &Agent) -> Vec<Cell> {
    // The node, in a cluster.
    let mut cells = vec![Cell::new(Style::Strong, sanitize::one_line(&agent.name)), format::node(agent).into()];
    cells.push(match &agent.turn {
        Some(turn) => format::running_cell(turn),
        None => format::agent_state_cell(agent),
    });
    cells.extend(context_cells(out, agent.context.as_ref()));
    let last = agent.last_session.as_ref().map(|last| {
        let age = out.clock().ago(last.held_at());
        let subject = format::subject(last.description.as_deref(), last.summary.as_deref());
        let subject = if subject.is_empty() { sanitize::one_line(&last.session_id) } else { subject };
        format!("{age}: {subject}")
    });
    let open = Some(conversations::open_in(&agent.attached)).filter(|open| !open.is_empty());
    cells.push(open.into_iter().chain(last).collect::<Vec<_>>().join("; ").into());
    cells
}
