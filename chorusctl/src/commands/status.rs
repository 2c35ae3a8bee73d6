//! `chorusctl status`. It is asked often, by people and by prompts of shells: no local time is shown here, because
//! reading the time zone would take longer than everything else.

use chorus_proto::methods::daemon::{
    AgentTotals, DaemonInfo, DiscordInfo, DiscordState, SandboxInfo, Status, StatusParams, StatusResult,
};
use chorus_proto::methods::tasks::{List, ListParams, TaskStatus};
use chorus_proto::{Agent, CallError, ErrorKind, TodayUsage};

use crate::app::App;
use crate::commands::{approvals, describe};
use crate::error::Failure;
use crate::ui::out::Format;
use crate::ui::words::{self, count};
use crate::ui::{Cell, Column, Out, Style, Table, safe, time};

/// Agents that are shown, at most.
const SHOWN: u64 = 50;

/// Show the daemon and its agents
///
/// Agents with a live conversation come first. Of more than 50 agents the rest is counted; `agent list` and --json have
/// all.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Only this agent
    #[arg(value_name = "AGENT", id = "only")]
    agent: Option<String>,
}

impl Args {
    /// Only `agent`, where one is named.
    #[must_use]
    pub fn of(agent: Option<String>) -> Self {
        Self { agent }
    }
}

/// Shows them.
///
/// # Errors
/// Why there is nothing to show.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let agent = args.agent.or_else(|| app.global.agent.clone());
    let only = agent.is_some();
    if app.out.format() != Format::Text {
        return app.answer::<Status>(&StatusParams { agent, limit: None }, |_, _| Ok(()));
    }
    let status = match agent {
        Some(agent) => app.call::<Status>(&StatusParams { agent: Some(agent), limit: None })?,
        None => ask(app, SHOWN)?,
    };
    write(&mut app.out, &status)?;
    if only && status.tasks.running > 0 {
        running(app, &status)?;
    }
    if status.agents.is_empty() {
        app.out.flush()?;
        app.notes.line("no agents yet");
        app.notes.hint("chorusctl agent init NAME");
    }
    Ok(())
}

/// Asks for the daemon and at most `limit` agents. A daemon of an earlier release knows no limit, and is asked for all.
///
/// # Errors
/// No connection, or what the daemon says.
pub fn ask(app: &mut App, limit: u64) -> Result<StatusResult, Failure> {
    match app.client()?.call::<Status>(&StatusParams { agent: None, limit: Some(limit) }) {
        Err(CallError::Rpc(error)) if error.kind() == ErrorKind::InvalidParams => {
            app.call::<Status>(&StatusParams::default())
        }
        answer => Ok(answer?),
    }
}

/// `chorusd 0.1.0 · pid 4711 · up 3 h 12 min · 14 MiB`.
#[must_use]
pub fn line(out: &Out, daemon: &DaemonInfo) -> String {
    format!(
        "{} · pid {} · up {} · {} · {}",
        out.paint(Style::Strong, &format!("chorusd {}", safe::one_line(&daemon.version))),
        daemon.pid,
        time::exact(daemon.uptime_s),
        words::bytes(daemon.rss_bytes),
        count(daemon.connections, "connection"),
    )
}

/// `bubblewrap, Landlock 7, seccomp, memory by cgroup, processes by namespace`, and what is missing.
fn confined(sandbox: &SandboxInfo) -> String {
    let mut text = safe::one_line(&sandbox.way);
    if let Some(version) = sandbox.landlock {
        text.push_str(&format!(", Landlock {version}"));
    }
    if sandbox.seccomp {
        text.push_str(", seccomp");
    }
    for (what, by) in [("memory", &sandbox.memory), ("processes", &sandbox.processes)] {
        text.push_str(&format!(", {what} by {}", safe::one_line(by)));
    }
    for missing in &sandbox.missing {
        text.push_str("; missing: ");
        text.push_str(&safe::one_line(missing));
    }
    text
}

/// `connected, 2 servers`.
fn discord(out: &mut Out, info: &DiscordInfo) -> Option<String> {
    let why = info.why.as_deref().map(|why| format!(": {}", safe::one_line(why))).unwrap_or_default();
    let next = info.until.map(|at| format!("; next try in {}", out.clock().until(at))).unwrap_or_default();
    let hint = info.hint.as_deref().map(|hint| format!(" ({})", safe::one_line(hint))).unwrap_or_default();
    if info.connected {
        return Some(format!("connected, {}{why}{hint}", count(info.guilds, "server")));
    }
    match info.state? {
        // Older daemons do not say why.
        DiscordState::Off => info.why.as_ref().map(|_| format!("off{why}")),
        DiscordState::Connecting => Some("connecting".to_owned()),
        DiscordState::Connected | DiscordState::Waiting => Some(format!("not connected{why}{next}")),
        DiscordState::Stopped => Some(format!("stopped{why}{hint}")),
    }
}

fn write(out: &mut Out, status: &StatusResult) -> Result<(), Failure> {
    let first = line(out, &status.daemon);
    writeln!(out, "{first}")?;
    writeln!(out, "home {}", safe::one_line(&status.daemon.home))?;
    if let Some(sandbox) = &status.daemon.sandbox {
        writeln!(out, "sandbox {}", confined(sandbox))?;
    }
    if status.tasks.running + status.tasks.finished > 0 {
        writeln!(out, "tasks {} running, {} finished", status.tasks.running, status.tasks.finished)?;
    }
    if let Some(text) = discord(out, &status.discord) {
        writeln!(out, "Discord {text}")?;
    }
    if status.models.available > 0 {
        writeln!(out, "{} available", count(status.models.available, "model"))?;
    }
    let shown = || status.agents.iter().map(|agent| agent.approvals).sum();
    let waiting = status.totals.map_or_else(shown, |totals| totals.approvals);
    if waiting > 0 {
        writeln!(out, "{}", approvals::shown::waiting(waiting))?;
    }
    if status.agents.is_empty() {
        return Ok(());
    }
    out.text("\n")?;
    let mut table = Table::new([
        Column::new("AGENT"),
        Column::new("STATE"),
        Column::new("TURN").optional(),
        Column::new("MESSAGES").right(),
        Column::new("UNSAVED").right().optional(),
        Column::new("TOKENS").right().optional(),
        Column::new("WINDOW").right().optional(),
        Column::new("ACTIVITY"),
        Column::new("PUT AWAY").optional(),
        Column::new("TODAY").right().optional(),
        Column::new("LAST SESSION").flexible(),
    ]);
    for agent in &status.agents {
        table.row(row(out, agent));
    }
    table.write(out)?;
    match status.totals.and_then(|totals| not_shown(totals, &status.agents)) {
        Some(line) => writeln!(out, "{line}"),
        None => Ok(()),
    }
}

/// `and 9,940 idle (all: chorusctl agent list)`; nothing where all are shown.
fn not_shown(totals: AgentTotals, shown: &[Agent]) -> Option<String> {
    let active = shown.iter().filter(|agent| agent.context.is_some()).count() as u64;
    let idle = shown.len() as u64 - active;
    let rest = [(totals.active.saturating_sub(active), "active"), (totals.idle.saturating_sub(idle), "idle")];
    let parts: Vec<_> =
        rest.iter().filter(|(n, _)| *n > 0).map(|(n, state)| format!("{} {state}", words::grouped(*n))).collect();
    (!parts.is_empty()).then(|| format!("and {} (all: chorusctl agent list)", parts.join(", ")))
}

/// What the one agent has running in the background.
fn running(app: &mut App, status: &StatusResult) -> Result<(), Failure> {
    let agent = status.agents.first().map(|agent| agent.name.clone());
    let params = ListParams { agent, limit: Some(status.tasks.running), ..Default::default() };
    let tasks = app.call::<List>(&params)?.tasks;
    app.out.text("\nRunning tasks:\n")?;
    for task in tasks.iter().filter(|task| task.status == TaskStatus::Running) {
        let since = app.out.clock().ago(task.started_at);
        let (id, command) = (safe::one_line(&task.id), safe::one_line(&task.command));
        writeln!(app.out, "  [{id}] {command} (running, started {since}, pid {})", task.pid)?;
    }
    Ok(())
}

fn row(out: &mut Out, agent: &Agent) -> Vec<Cell> {
    let mut cells = vec![Cell::new(Style::Strong, safe::one_line(&agent.name)), describe::state(agent.state)];
    cells.push(agent.turn.as_ref().map(describe::turn).unwrap_or_default().into());
    match &agent.context {
        None => cells.extend(std::iter::repeat_n(Cell::default(), 6)),
        Some(context) => cells.extend([
            context.messages.to_string().into(),
            if context.unsaved == 0 { Cell::default() } else { context.unsaved.to_string().into() },
            words::tokens(context.token_estimate).into(),
            context.meter.as_ref().map(describe::meter).unwrap_or_default().into(),
            out.clock().ago(context.last_activity_at).into(),
            context.idle_deadline_at.map_or_else(String::new, |at| format!("in {}", out.clock().until(at))).into(),
        ]),
    }
    cells.push(agent.today.as_ref().map(today).unwrap_or_default().into());
    cells.push(match &agent.last_session {
        None => Cell::default(),
        Some(last) => {
            let age = out.clock().ago(last.saved_at);
            let subject = describe::subject(last.description.as_deref(), last.summary.as_deref());
            let subject = if subject.is_empty() { safe::one_line(&last.session_id) } else { subject };
            format!("{age}: {subject}").into()
        }
    });
    cells
}

/// `~12k $0.04`: what calls of models used today.
fn today(used: &TodayUsage) -> String {
    let tokens = words::tokens(used.tokens);
    used.cost_usd.map_or_else(|| tokens.clone(), |cost| format!("{tokens} {}", words::dollars(cost)))
}
