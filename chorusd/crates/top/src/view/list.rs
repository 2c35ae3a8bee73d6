//! The list of agents and conversations, with the approvals above it and the tasks below.

use chorus_proto::approval_text::describe_action;
use chorus_proto::methods::approvals::Approval;
use chorus_proto::methods::tasks::TaskStatus;
use chorus_proto::{Agent, Session, SessionRef};
use chorus_terminal_text::meter::{BarStyle, format_meter};
use chorus_terminal_text::{duration, text, units};
use jiff::Timestamp;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::text::Span;

use super::header::format_cost;
use super::paint::{Paint, Rows, cut, fit};
use crate::fleet::Row;
use crate::state::State;

pub(super) const KEYS: &[(&str, &str)] = &[
    ("↑↓", "select"),
    ("Enter", "open"),
    ("/", "search"),
    ("h", "history"),
    ("t", "tree"),
    ("a", "approvals"),
    ("?", "help"),
    ("q", "quit"),
];

/// An imported conversation that was written in within these seconds is still held.
const LIVE_SECONDS: i64 = 300;

/// The start of the names of conversations in which schedules run.
const SCHEDULE_PREFIX: &str = "schedule-";

/// Further columns before the last one, whose text would run together with the time before it.
const DOING_GAP: usize = 1;

/// Widths of the columns; 0 for one that is not shown.
struct Columns {
    name: usize,
    node: usize,
    state: usize,
    messages: usize,
    context: usize,
    today: usize,
    saves: usize,
    doing: usize,
}

impl Columns {
    fn of(width: usize, has_nodes: bool) -> Self {
        let mut columns = Self {
            name: (width / 6).clamp(12, 30),
            node: if has_nodes && width >= 100 { 12 } else { 0 },
            state: 12,
            messages: 5,
            context: if width >= 120 { 20 } else { 11 },
            today: if width >= 72 { 8 } else { 0 },
            saves: 7,
            doing: 0,
        };
        if width < 60 {
            columns.context = 5;
        }
        let fixed = [
            columns.name,
            columns.node,
            columns.state,
            columns.messages,
            columns.context,
            columns.today,
            columns.saves,
        ];
        let used: usize = fixed.iter().filter(|column| **column > 0).map(|column| column + 1).sum();
        columns.doing = width.saturating_sub(used + DOING_GAP);
        columns
    }
}

/// Draws the list.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &mut State) {
    let paint = Paint::new(state.has_color);
    let mut rows = Rows::new(buffer, area);
    let is_tall = area.height >= 30;
    draw_approvals(&mut rows, paint, state, if is_tall { 6 } else { 2 });
    let tasks = running_tasks(state, paint, rows.columns(), if is_tall { 8 } else { 3 });
    let columns = Columns::of(rows.columns(), state.fleet.has_nodes());
    rows.line(heading(paint, &columns));
    let height = rows.left().saturating_sub(if tasks.is_empty() { 0 } else { tasks.len() + 1 });
    if state.fleet.len() == 0 && state.status.is_some() {
        rows.line(vec![paint.faint("no agents yet")]);
        rows.line(vec![
            paint.faint("start a conversation: chorusctl chat (or keep those of other tools: chorusctl capture on)"),
        ]);
        return;
    }
    let mut selection = state.selection;
    let first = selection.scroll(height, state.fleet.len());
    state.selection = selection;
    state.page = height.max(1);
    for at in first..(first + height).min(state.fleet.len()) {
        let Some(row) = state.fleet.row(at) else { break };
        let spans = row_spans(paint, &columns, row, state);
        if at == selection.at { rows.selected_line(spans) } else { rows.line(spans) }
    }
    if !tasks.is_empty() {
        let gap = rows.left().saturating_sub(tasks.len() + 1);
        rows.skip(gap);
        rows.line(vec![paint.strong("RUNNING TASKS")]);
        tasks.into_iter().for_each(|line| rows.line(line));
    }
}

fn draw_approvals(rows: &mut Rows<'_>, paint: Paint, state: &State, most: usize) {
    for approval in state.approvals.iter().take(most) {
        let action = describe_action(&approval.action);
        let who = super::panels::who(&approval.agent, approval.conversation.as_deref());
        let head = format!("{who} wants to {}", action.wish);
        let room = rows.columns().saturating_sub(text::width(&head) + 3);
        rows.line(vec![paint.bad(format!("? {head} ")), paint.plain(cut(action.subject, room))]);
    }
    if let Some(more) = state.approvals.len().checked_sub(most).filter(|more| *more > 0) {
        rows.line(vec![paint.bad(format!("? and {more} more (a)"))]);
    }
}

fn running_tasks(state: &State, paint: Paint, columns: usize, most: usize) -> Vec<Vec<Span<'static>>> {
    let running = state.tasks.iter().filter(|task| task.status == TaskStatus::Running);
    running
        .take(most)
        .map(|task| {
            let since = age(task.started_at, state.now);
            let (id, agent) = (fit(&task.id, 6, false), fit(&task.agent, 14, false));
            let room = columns.saturating_sub(6 + 14 + 2 + 10);
            let command = fit(&task.command, room, false);
            vec![paint.tool(id), paint.plain(format!("{agent} {command} ")), paint.faint(fit(&since, 9, true))]
        })
        .collect()
}

fn heading(paint: Paint, columns: &Columns) -> Vec<Span<'static>> {
    let names = [
        (columns.name, "AGENT", false),
        (columns.node, "NODE", false),
        (columns.state, "STATE", false),
        (columns.messages, "MSGS", true),
        (columns.context, "CONTEXT", false),
        (columns.today, "TODAY", true),
        (columns.saves, "SAVE IN", true),
        (columns.doing, "NOW", false),
    ];
    let shown = names.iter().filter(|(width, ..)| *width > 0);
    let mut cells: Vec<String> = shown.map(|(width, name, is_right)| fit(name, *width, *is_right)).collect();
    if let Some(last) = cells.last_mut().filter(|_| columns.doing > 0) {
        last.insert_str(0, &" ".repeat(DOING_GAP));
    }
    vec![paint.strong(cells.join(" "))]
}

fn row_spans(paint: Paint, columns: &Columns, row: Row<'_>, of: &State) -> Vec<Span<'static>> {
    let now = of.now;
    let agent = &row.record().agent;
    let name = match row {
        Row::Agent(_) => paint.strong(fit(&agent.name, columns.name, false)),
        Row::Conversation(_, conversation) => {
            paint.plain(format!("  {}", fit_conversation(&conversation.name, columns.name.saturating_sub(2))))
        }
        Row::Captured(_, session) => {
            let title = title(session.header.description.as_deref(), None, &session.header.session_id);
            paint.plain(format!("  {}", fit(&title, columns.name.saturating_sub(2), false)))
        }
    };
    let (state, is_good) = state_text(row, of);
    let state = fit(&state, columns.state, false);
    let messages = match row {
        Row::Captured(_, session) => Some(session.header.message_count),
        row => row.context().map(|context| context.messages),
    };
    let context = row.context();
    let meter = context.and_then(|context| context.meter.as_ref());
    let today = match row {
        Row::Agent(_) => agent.today.as_ref().map(|today| match today.cost_usd {
            Some(cost) => format_cost(cost),
            None => units::format_tokens(today.tokens),
        }),
        _ => None,
    };
    let deadline = context.and_then(|context| context.idle_deadline_at).filter(|_| row.turn().is_none());
    let mut spans = vec![name, paint.plain(" ")];
    if columns.node > 0 {
        spans.push(paint.faint(format!("{} ", fit(agent.node.as_deref().unwrap_or_default(), columns.node, false))));
    }
    let state = format!("{state} ");
    spans.push(match is_good {
        Some(true) => paint.good(state),
        Some(false) => paint.bad(state),
        None => paint.faint(state),
    });
    spans.push(paint.plain(format!("{} ", fit(&count(messages), columns.messages, true))));
    let meter = meter.map(|meter| format_meter(meter, columns.context, BarStyle::Blocks)).unwrap_or_default();
    spans.push(paint.plain(format!("{} ", fit(&meter, columns.context, false))));
    if columns.today > 0 {
        spans.push(paint.plain(format!("{} ", fit(&today.unwrap_or_default(), columns.today, true))));
    }
    let saves = deadline.map(|at| until(at, now)).unwrap_or_default();
    spans.push(paint.plain(format!("{} {:DOING_GAP$}", fit(&saves, columns.saves, true), "")));
    let doing = doing_text(row, of);
    let doing = fit(&doing, columns.doing, false);
    spans.push(if row.turn().is_some() { paint.tool(doing) } else { paint.faint(doing) });
    spans
}

/// Returns the name of a conversation for a column. Those of schedules differ behind their prefix, so that is left out if the whole name has
/// no room.
fn fit_conversation(name: &str, columns: usize) -> String {
    match name.strip_prefix(SCHEDULE_PREFIX).filter(|_| text::width(name) > columns) {
        Some(schedule) => fit(&format!("…{schedule}"), columns, false),
        None => fit(name, columns, false),
    }
}

fn count(number: Option<u64>) -> String {
    match number {
        None => String::new(),
        Some(number @ 0..100_000) => number.to_string(),
        Some(number) => format!("{}k", number / 1000),
    }
}

/// Returns the state in a few words, and whether it is good or bad.
fn state_text(row: Row<'_>, of: &State) -> (String, Option<bool>) {
    let (record, now) = (row.record(), of.now);
    if let Row::Captured(_, session) = row {
        let is_live = now.as_second() - session.header.held_at().as_second() < LIVE_SECONDS;
        return if is_live { ("captured now".into(), Some(true)) } else { ("captured".into(), None) };
    }
    if has_approval(row, &of.approvals) {
        return ("asks you (a)".into(), Some(false));
    }
    if let Some(turn) = row.turn() {
        return (format!("runs {}", duration::format_rounded(record.turn_seconds(turn, now))), Some(true));
    }
    match row.context() {
        _ if record.agent.unreachable => ("unreachable".into(), Some(false)),
        _ if record.agent.problem.is_some() => ("bad config".into(), Some(false)),
        Some(_) => ("active".into(), Some(true)),
        None if record.agent.import_source.is_some() => ("captured".into(), None),
        None => ("idle".into(), None),
    }
}

/// Returns true if the conversation of a row asks for an approval.
fn has_approval(row: Row<'_>, approvals: &[Approval]) -> bool {
    let conversation = match row {
        Row::Agent(_) => None,
        Row::Conversation(_, conversation) => Some(&conversation.name),
        Row::Captured(..) => return false,
    };
    let agent = &row.record().agent.name;
    approvals.iter().any(|approval| approval.agent == *agent && approval.conversation.as_ref() == conversation)
}

/// Says what happens in a conversation, or what happened last.
fn doing_text(row: Row<'_>, of: &State) -> String {
    let now = of.now;
    let agent = &row.record().agent;
    if let Some(turn) = row.turn() {
        let queued = match turn.waiting {
            0 => String::new(),
            waiting => format!(", {waiting} queued"),
        };
        return match row.tools().as_deref() {
            _ if turn.waits_for_slot => format!("queued (turn limit){queued}"),
            Some([]) => format!("model call {}{queued}", turn.step.max(1)),
            Some(tools) => format!("→ {}{queued}", tool_names(tools)),
            // It runs since before the screen was opened.
            None => format!("running{queued}"),
        };
    }
    match row {
        Row::Captured(_, session) => captured_text(session, now),
        Row::Conversation(_, conversation) => last_text(conversation.last_session.as_ref(), now),
        Row::Agent(_) if agent.problem.is_some() => agent.problem.clone().unwrap_or_default(),
        Row::Agent(record) if agent.import_source.is_some() => match record.captured_total {
            0 => String::new(),
            1 => "1 conversation".into(),
            total => format!("{} conversations", units::group_digits(total)),
        },
        Row::Agent(_) => agent_text(agent, of),
    }
}

/// Returns the names of tools that run, the newest first.
pub(super) fn tool_names(tools: &[&str]) -> String {
    let names: Vec<&str> = tools.iter().rev().map(|name| chorus_proto::tool_gist::display_name(name)).collect();
    names.join(", ")
}

fn agent_text(agent: &Agent, of: &State) -> String {
    let others: Vec<&str> =
        agent.attached.iter().map(|attached| &*attached.client).filter(|client| *client != of.client).collect();
    match others.as_slice() {
        [] => last_text(agent.last_session.as_ref(), of.now),
        [one] => format!("open in {one}"),
        [one, more @ ..] => format!("open in {one} and {} more", more.len()),
    }
}

fn last_text(last: Option<&SessionRef>, now: Timestamp) -> String {
    let Some(last) = last else { return String::new() };
    let title = title(last.description.as_deref(), last.summary.as_deref(), &last.session_id);
    format!("{}: {title}", age(last.held_at(), now))
}

fn captured_text(session: &Session, now: Timestamp) -> String {
    let project = session.header.source.as_ref().and_then(|source| source.project.as_deref());
    let project = project.and_then(|path| path.rsplit('/').find(|part| !part.is_empty())).unwrap_or_default();
    let age = age(session.header.held_at(), now);
    if project.is_empty() { age } else { format!("{age}: {project}") }
}

/// Returns the title of a session: its description, else its summary, else its name.
pub(super) fn title(description: Option<&str>, summary: Option<&str>, name: &str) -> String {
    let texts = [description, summary, Some(name)];
    texts.into_iter().flatten().find(|text| !text.trim().is_empty()).unwrap_or_default().to_owned()
}

/// Formats how long ago a time was.
pub(super) fn age(time: Timestamp, now: Timestamp) -> String {
    match now.as_second() - time.as_second() {
        ..10 => "now".into(),
        seconds => duration::format_rounded(seconds.unsigned_abs()),
    }
}

/// Formats the time until `time`. Minutes are rounded up.
pub(super) fn until(time: Timestamp, now: Timestamp) -> String {
    match time.as_second() - now.as_second() {
        ..=0 => "now".into(),
        seconds @ ..60 => duration::format_rounded(seconds.unsigned_abs()),
        seconds => duration::format_rounded(seconds.unsigned_abs().next_multiple_of(60)),
    }
}
