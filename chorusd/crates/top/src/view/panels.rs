//! The history, the tree, the search, the approvals and questions.

use chorus_proto::Session;
use chorus_proto::approval_text::{describe_action, reach_line};
use chorus_proto::methods::approvals::Approval;
use chorus_proto::methods::search::SearchHit;
use chorus_proto::pluralize::pluralize;
use chorus_proto::visible_text::make_visible;
use chorus_terminal_text::{sanitize, text, units};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::text::Span;

use super::help;
use super::list::{age, title, until};
use super::paint::{Paint, Rows, cut, fit};
use crate::panels::{Confirm, History, Panel, Search, SearchRow, Tree, TreeLine, TreeLineKind};
use crate::state::{ApprovalRow, ApprovalsPanel, State};

/// The rows of a list of approvals, and the lines of an action, without which a panel is small.
const MIN_LIST_ROWS: usize = 3;
const MIN_ACTION_LINES: usize = 4;

/// The line in which a denial is explained.
const REASON: &str = "deny, because (optional): ";

type Keys = &'static [(&'static str, &'static str)];

const HISTORY_KEYS: Keys = &[("↑↓", "select"), ("Enter", "read"), ("r", "restore"), ("t", "tree"), ("Esc", "back")];
const TREE_KEYS: Keys = &[("↑↓", "select"), ("Enter", "read"), ("r", "restore"), ("h", "history"), ("Esc", "back")];
const SEARCH_KEYS: Keys = &[("↑↓", "select"), ("Enter", "open"), ("Esc", "back")];
const APPROVAL_KEYS: Keys =
    &[("y", "allow once"), ("n", "deny"), ("↑↓", "select"), ("PgUp/PgDn", "scroll"), ("Esc", "back")];
const REASON_KEYS: Keys = &[("Enter", "deny"), ("Esc", "do not")];
pub(super) const CONFIRM_KEYS: Keys = &[("y", "yes"), ("n", "no")];

/// Formats `api`, or `api (review)` for the conversation `review`.
pub(super) fn who(agent: &str, conversation: Option<&str>) -> String {
    let agent = sanitize::one_line(agent);
    match conversation {
        Some(conversation) => format!("{agent} ({})", sanitize::one_line(conversation)),
        None => agent,
    }
}

/// Draws a panel other than a conversation. Returns its keys and the place of the cursor.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &mut State, panel: &mut Panel) -> (Keys, Option<Position>) {
    let paint = Paint::new(state.has_color);
    let mut rows = Rows::new(buffer, area);
    match panel {
        Panel::History(history) => {
            draw_history(&mut rows, paint, state, history);
            (HISTORY_KEYS, None)
        }
        Panel::Tree(tree) => {
            draw_tree(&mut rows, paint, state, tree);
            (TREE_KEYS, None)
        }
        Panel::Search(search) => {
            let cursor = draw_search(&mut rows, paint, state, search);
            (SEARCH_KEYS, Some(Position::new(area.x + cursor, area.y)))
        }
        Panel::Approvals(approvals) => match draw_approvals(&mut rows, paint, state, approvals) {
            Some((column, row)) => (REASON_KEYS, Some(Position::new(area.x + column, row))),
            None => (APPROVAL_KEYS, None),
        },
        Panel::Help(first) => {
            help::draw(&mut rows, paint, first);
            (help::KEYS, None)
        }
        Panel::Conversation(_) | Panel::Confirm(_) => (CONFIRM_KEYS, None),
    }
}

/// Draws a question over the end of the list that it is about.
pub(super) fn draw_question(buffer: &mut Buffer, area: Rect, state: &State, confirm: &Confirm) {
    let paint = Paint::new(state.has_color);
    let width = usize::from(area.width);
    let lines: Vec<String> = confirm
        .question
        .iter()
        .flat_map(|line| {
            let line = sanitize::one_line(line);
            text::wrap(&line, width).into_iter().map(|line| line.into_owned()).collect::<Vec<_>>()
        })
        .collect();
    let height = u16::try_from(lines.len() + 2).unwrap_or(area.height).min(area.height);
    let below = Rect { y: area.bottom() - height, height, ..area };
    for row in below.rows() {
        buffer.set_stringn(row.x, row.y, " ".repeat(width), width, ratatui_core::style::Style::reset());
    }
    let mut rows = Rows::new(buffer, below);
    rows.line(vec![paint.faint("─".repeat(width))]);
    lines.into_iter().for_each(|line| rows.line(vec![paint.strong(line)]));
    rows.line(vec![paint.strong("[y]es, [N]o")]);
}

fn draw_history(rows: &mut Rows<'_>, paint: Paint, state: &State, history: &mut History) {
    let name = who(&history.target.agent, history.target.conversation.as_deref());
    let total = units::group_digits(history.total);
    let Some(sessions) = &history.sessions else {
        return draw_unloaded(rows, paint, format!("History of {name}"), history.failure.as_deref());
    };
    let shown = if (sessions.len() as u64) < history.total {
        format!("the newest {} of ", sessions.len())
    } else {
        String::new()
    };
    rows.line(vec![paint.strong(format!("History of {name}")), paint.faint(format!("  {shown}{total} saved"))]);
    if sessions.is_empty() {
        return rows.line(vec![paint.faint("no saved conversations yet")]);
    }
    let height = rows.left();
    let first = history.selection.scroll(height, sessions.len());
    for (at, session) in sessions.iter().enumerate().skip(first).take(height) {
        let spans = session_spans(paint, session, rows.columns(), state);
        if at == history.selection.at { rows.selected_line(spans) } else { rows.line(spans) }
    }
}

/// Draws a list that has not arrived.
fn draw_unloaded(rows: &mut Rows<'_>, paint: Paint, title: String, failure: Option<&str>) {
    let Some(failure) = failure else {
        return rows.line(vec![paint.strong(title), paint.faint("  loading …")]);
    };
    rows.line(vec![paint.strong(title), paint.bad("  not loaded")]);
    let failure = sanitize::one_line(failure);
    for line in text::wrap(&failure, rows.columns()) {
        rows.line(vec![paint.bad(line.into_owned())]);
    }
}

fn session_spans(paint: Paint, session: &Session, columns: usize, state: &State) -> Vec<Span<'static>> {
    let header = &session.header;
    let (id, when) = (fit(&session.short_id, 9, false), fit(&age(header.held_at(), state.now), 9, true));
    let messages = fit(&header.message_count.to_string(), 6, true);
    let tags: String = header.tags.iter().map(|tag| format!(" #{tag}")).collect();
    let mut text = title(header.description.as_deref(), header.summary.as_deref(), &header.session_id) + &tags;
    if !session.available {
        text = format!("(file missing or unreadable) {text}");
    }
    let room = columns.saturating_sub(9 + 9 + 6 + 3);
    vec![paint.tool(id), paint.faint(format!(" {when} {messages} ")), paint.plain(fit(&text, room, false))]
}

fn draw_tree(rows: &mut Rows<'_>, paint: Paint, state: &State, tree: &mut Tree) {
    let name = who(&tree.target.agent, None);
    let Some(result) = &tree.result else {
        return draw_unloaded(rows, paint, format!("Tree of {name}"), tree.failure.as_deref());
    };
    let total = units::group_digits(result.total);
    let shown = result.sessions.len();
    let of = if (shown as u64) < result.total { format!("the first {shown} of ") } else { String::new() };
    rows.line(vec![paint.strong(format!("Tree of {name}")), paint.faint(format!("  {of}{total} saved"))]);
    if tree.lines.is_empty() {
        return rows.line(vec![paint.faint("no saved conversations yet")]);
    }
    let height = rows.left();
    let first = tree.selection.scroll(height, tree.lines.len());
    for (at, line) in tree.lines.iter().enumerate().skip(first).take(height) {
        let spans = tree_spans(paint, line, tree, rows.columns(), state);
        if at == tree.selection.at { rows.selected_line(spans) } else { rows.line(spans) }
    }
}

fn tree_spans(paint: Paint, line: &TreeLine, tree: &Tree, columns: usize, state: &State) -> Vec<Span<'static>> {
    let result = tree.result.as_ref();
    let (id, text, facts) = match &line.kind {
        TreeLineKind::Gap(text) => (String::new(), text.clone(), String::new()),
        TreeLineKind::Live => {
            let live = result.and_then(|result| result.live.as_ref());
            let facts = live.map(|live| format!("{}, {} unsaved", pluralize(live.messages, "message"), live.unsaved));
            ("live".into(), String::new(), facts.unwrap_or_default())
        }
        TreeLineKind::Session(at) => {
            let Some(session) = result.and_then(|result| result.sessions.get(*at)) else { return Vec::new() };
            let text = title(session.description.as_deref(), session.summary.as_deref(), &session.session_id);
            let when = age(session.ended_at.unwrap_or(session.saved_at), state.now);
            let facts = format!("{} · {when}", pluralize(session.message_count, "message"));
            (session.short_id.clone(), text, facts)
        }
    };
    let used = text::width(&line.prefix) + text::width(&id) + 2 + text::width(&facts) + 2;
    let text = fit(&text, columns.saturating_sub(used), false);
    vec![
        paint.plain(line.prefix.clone()),
        paint.tool(cut(&id, 36)),
        paint.plain(format!("  {text}  ")),
        paint.faint(facts),
    ]
}

/// Returns the column of the cursor.
fn draw_search(rows: &mut Rows<'_>, paint: Paint, state: &State, search: &mut Search) -> u16 {
    let (shown, column) = search.editor.shown(rows.columns().saturating_sub(2));
    rows.line(vec![paint.user("/ "), paint.plain(shown)]);
    let status = match (&search.error, &search.result) {
        (Some(error), _) => paint.bad(cut(error, rows.columns())),
        (None, None) if search.editor.text().trim().is_empty() => {
            paint.faint("type to search the conversations of all agents, and the names of agents")
        }
        (None, None) => paint.faint("searching …"),
        (None, Some(_)) if !search.is_current() => paint.faint("searching …"),
        (None, Some(result)) => {
            let percent = result.index.percent_indexed();
            let partly = percent.map(|percent| format!(" (search index {percent} %)")).unwrap_or_default();
            let many = if result.hits.len() >= 50 { "the best ".to_owned() } else { String::new() };
            paint.faint(format!("{many}{}{partly}", pluralize(result.hits.len() as u64, "message")))
        }
    };
    rows.line(vec![status]);
    let is_current = search.is_current();
    let height = rows.left();
    let length = search.len();
    let first = search.selection.scroll(height, length);
    for at in first..(first + height).min(length) {
        let Some(found) = search.row(at) else { break };
        let spans = match found {
            SearchRow::Agent(name) => {
                vec![paint.faint("agent "), paint.strong(fit(name, rows.columns().saturating_sub(6), false))]
            }
            SearchRow::Message(hit) => hit_spans(paint, hit, rows.columns(), state),
        };
        // What an earlier query has found is not what is typed.
        let spans = if is_current { spans } else { spans.into_iter().map(|span| paint.faint(span.content)).collect() };
        if at == search.selection.at { rows.selected_line(spans) } else { rows.line(spans) }
    }
    u16::try_from(column + 2).unwrap_or_default()
}

fn hit_spans(paint: Paint, hit: &SearchHit, columns: usize, state: &State) -> Vec<Span<'static>> {
    let conversation = hit.conversation.as_ref().map(|of| &*of.name);
    // All that a program has written are of one agent: only their titles tell them apart.
    let title = hit.title.as_deref().filter(|title| hit.imported && hit.message.is_some() && !title.trim().is_empty());
    let place = match title {
        Some(title) => fit(title, 16, false),
        None => fit(&who(&hit.agent_name, conversation), 16, false),
    };
    let when = fit(&age(hit.at, state.now), 9, true);
    let is_live = hit.session.is_none();
    let kind = if is_live { "live " } else { "     " };
    let room = columns.saturating_sub(16 + 9 + 5 + 3);
    vec![
        paint.strong(place),
        paint.faint(format!(" {when} ")),
        paint.good(kind),
        paint.plain(fit(&hit.snippet, room, false)),
    ]
}

/// Returns the column and row of the cursor, if a reason is typed.
fn draw_approvals(rows: &mut Rows<'_>, paint: Paint, state: &State, panel: &mut ApprovalsPanel) -> Option<(u16, u16)> {
    panel.drawn = None;
    rows.line(vec![paint.strong("Pending approvals")]);
    if state.approvals.is_empty() {
        rows.line(vec![paint.faint("no pending approvals")]);
    }
    let selected = panel.selected()?;
    let lines = approval_lines(&selected.approval, rows.columns());
    let choices = match &selected.outcome {
        Some(outcome) => outcome.clone(),
        None => choices_text(&selected.approval),
    };
    let choices = text::wrap(&choices, rows.columns());
    // In a small panel the action is worth more than the other rows and the gaps.
    let is_small = rows.left() < (MIN_LIST_ROWS + lines.len().min(MIN_ACTION_LINES) + choices.len() + 2);
    let (most, gap) = if is_small { (1, 0) } else { ((rows.left() / 3).max(1), 1) };
    let first = panel.at.saturating_sub(most - 1);
    for (index, row) in panel.rows.iter().enumerate().skip(first).take(most) {
        let line = approval_row(rows.columns(), paint, state, row);
        if index == panel.at { rows.selected_line(line) } else { rows.line(line) }
    }
    rows.skip(gap);
    let height = rows.left().saturating_sub(choices.len() + gap);
    let is_cut = lines.len() > height;
    if height == 0 || (is_cut && height == 1) {
        rows.line(vec![paint.bad("enlarge the terminal to answer")]);
        return None;
    }
    panel.scroll = panel.scroll.min(lines.len().saturating_sub(height));
    let is_cut = lines.len() > panel.scroll + height;
    let shown = if is_cut { height - 1 } else { height };
    for line in lines.iter().skip(panel.scroll).take(shown) {
        rows.line(vec![paint.plain(line.clone())]);
    }
    if is_cut {
        rows.line(vec![paint.bad(format!("{} more lines (PgDn)", lines.len() - panel.scroll - shown))]);
    }
    rows.skip(gap);
    panel.drawn = panel.selected().map(|row| row.approval.id.clone());
    if let Some(reason) = &panel.reason {
        let (shown, column) = reason.shown(rows.columns().saturating_sub(REASON.len()));
        let y = rows.y();
        rows.line(vec![paint.strong(REASON), paint.plain(shown)]);
        return Some((u16::try_from(REASON.len() + column).unwrap_or_default(), y));
    }
    choices.into_iter().for_each(|line| rows.line(vec![paint.strong(line.into_owned())]));
    None
}

fn approval_row(columns: usize, paint: Paint, state: &State, row: &ApprovalRow) -> Vec<Span<'static>> {
    let approval = &row.approval;
    let text = describe_action(&approval.action);
    let name = who(&approval.agent, approval.conversation.as_deref());
    let head = fit(&format!("{}  {name} wants to {}", approval.id, text.wish), columns.saturating_sub(18), false);
    let tail = match &row.outcome {
        Some(outcome) => outcome.clone(),
        None => format!("expires in {}", until(approval.expires_at, state.now)),
    };
    vec![paint.plain(head), paint.faint(fit(&tail, 18, true))]
}

/// Returns the possible answers with their keys.
fn choices_text(approval: &Approval) -> String {
    let mut choices = vec!["[y] once".to_owned()];
    if approval.not_always.is_none() {
        choices.push("[a] always this exact action".into());
    }
    if !approval.patterns.is_empty() {
        choices.push(format!("[p] always {}", sanitize::one_line(&approval.patterns.join(", "))));
    }
    if approval.turn_allowed {
        choices.push("[s] all of this turn".into());
    }
    choices.push("[n] no".into());
    choices.join("  ")
}

/// Returns the whole action behind a bar, with every character visible, where it happens, and why it is asked about.
fn approval_lines(approval: &Approval, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut quote = |shown: &str, bar: &str| {
        let room = columns.saturating_sub(text::width(bar)).max(1);
        for line in make_visible(shown).split('\n') {
            lines.extend(text::split_columns(line, room).into_iter().map(|piece| format!("{bar}{piece}")));
        }
    };
    let action = describe_action(&approval.action);
    if !action.subject.is_empty() {
        quote(action.subject, "  │ ");
    }
    for detail in &approval.details {
        quote(&format!("{}:", detail.name), "  ");
        quote(&detail.text, "  │   ");
    }
    let directory = approval.directory.as_deref().map(sanitize::one_line);
    let reach = directory.and_then(|directory| reach_line(approval, &directory));
    let reason = approval.reason.as_deref().map(|reason| format!("asked because {}", sanitize::one_line(reason)));
    let never = approval.not_always.as_deref().map(|why| format!("cannot be allowed permanently: {why}"));
    for line in [reach, reason, never].into_iter().flatten() {
        let line = sanitize::one_line(&line);
        let wrapped = text::wrap(&line, columns.saturating_sub(2));
        lines.extend(wrapped.into_iter().map(|line| format!("  {line}")));
    }
    lines
}
