//! An open conversation.

use chorus_proto::approval_text::describe_action;
use chorus_proto::methods::approvals::Approval;
use chorus_proto::pluralize::pluralize;
use chorus_terminal_text::meter::{BarStyle, format_meter};
use chorus_terminal_text::{duration, sanitize, text};
use jiff::tz::TimeZone;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::text::Span;

use super::list::until;
use super::paint::{Paint, Rows, cut};
use super::panels::who;
use crate::conversation::{Conversation, Source};
use crate::entries::{Entry, Kind};
use crate::state::{Link, State};

const LIVE_KEYS: &[(&str, &str)] =
    &[("Enter", "send"), ("Esc", "back"), ("PgUp/PgDn", "scroll"), ("Tab", "approval"), ("Ctrl-X", "cancel the turn")];
const SAVED_KEYS: &[(&str, &str)] = &[("Esc", "back"), ("↑↓ PgUp/PgDn", "scroll"), ("r", "restore")];

/// Columns before texts.
const INDENT: &str = "  ";
/// Widest text; longer lines are hard to read.
const MAX_WIDTH: usize = 120;
/// The limit on lines of what went wrong.
const MAX_NOTICE_LINES: usize = 4;

pub(super) fn keys(open: &Conversation) -> &'static [(&'static str, &'static str)] {
    if open.target().is_some() { LIVE_KEYS } else { SAVED_KEYS }
}

/// Draws whose conversation it is, how full it is, and what happens.
pub(super) fn draw_header(buffer: &mut Buffer, area: Rect, state: &State, open: &Conversation) {
    let paint = Paint::new(state.has_color);
    let mut rows = Rows::new(buffer, area);
    let target = match &open.source {
        Source::Saved { agent, title, .. } => {
            let name = cut(agent, 64);
            let title = cut(title, rows.columns().saturating_sub(name.len() + 3));
            rows.line(vec![paint.strong(name), paint.plain(format!(" · {title}"))]);
            let all = open.earlier;
            let text = match (open.is_loaded, all) {
                (false, _) => "loading …".to_owned(),
                (true, 0) => "saved conversation".to_owned(),
                (true, earlier) => format!("saved conversation, without its first {}", pluralize(earlier, "message")),
            };
            return rows.line(vec![paint.faint(text)]);
        }
        Source::Live(target) => target,
    };
    let mut spans = vec![paint.strong(who(&target.agent, target.conversation.as_deref()))];
    let row = state.fleet.find(target);
    let mut facts = Vec::new();
    if let Some(row) = row {
        match row.context() {
            Some(context) => {
                facts.push(pluralize(context.messages, "message"));
                facts.extend(context.meter.as_ref().map(|meter| format_meter(meter, 14, BarStyle::Blocks)));
                facts.extend(context.idle_deadline_at.map(|at| format!("saved in {}", until(at, state.now))));
            }
            None => facts.push("idle".into()),
        }
        facts.extend(row.known().agent.model.as_deref().map(|model| cut(model, 40)));
    }
    let mut used = text::width(&spans[0].content);
    for fact in facts {
        used += text::width(&fact) + 3;
        if used <= rows.columns() {
            spans.push(paint.plain(format!(" · {fact}")));
        }
    }
    rows.line(spans);
    let turn = row.and_then(|row| Some((row.known().turn_seconds(row.turn()?, state.now), row.tool())));
    rows.line(vec![match (open.turn, turn) {
        _ if !open.is_attached && state.link == Link::Connected => paint.faint("opening …"),
        (Some(_), Some((seconds, tool))) => {
            let tool = tool.map(|tool| format!(" → {}", cut(tool, 40))).unwrap_or_default();
            paint.good(format!("running {}{tool}", duration::format_rounded(seconds)))
        }
        (Some(_), None) => paint.good("running"),
        (None, _) if open.sent.is_some() => paint.faint("sending …"),
        (None, _) => match open.others.as_slice() {
            [] => paint.faint("live"),
            others => {
                let names: Vec<String> = others.iter().map(|other| cut(&other.client, 20)).collect();
                paint.faint(format!("live, also open in {}", names.join(", ")))
            }
        },
    }]);
}

/// Draws what was said, and the line to write in. Returns the place of the cursor.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &State, open: &mut Conversation) -> Option<Position> {
    let paint = Paint::new(state.has_color);
    let is_live = open.target().is_some();
    let notice = if is_live { notice_lines(paint, usize::from(area.width), state, open) } else { Vec::new() };
    let below = if is_live { notice.len() + 2 } else { 1 };
    let below = u16::try_from(below).unwrap_or(area.height).min(area.height);
    let text_area = Rect { height: area.height - below, ..area };
    draw_texts(buffer, text_area, paint, &state.zone, open);
    let rest = Rect { y: text_area.bottom(), height: below, ..area };
    let mut rows = Rows::new(buffer, rest);
    rows.line(vec![paint.faint("─".repeat(rows.columns()))]);
    if !is_live {
        return None;
    }
    notice.into_iter().for_each(|line| rows.line(line));
    let (shown, column) = open.editor.shown(rows.columns().saturating_sub(2));
    let y = rows.y();
    rows.line(vec![paint.user("> "), paint.plain(shown)]);
    Some(Position::new(area.x + 2 + u16::try_from(column).unwrap_or_default(), y))
}

/// Returns what is shown above the line to write in: an approval, what failed, or what happens.
fn notice_lines(paint: Paint, columns: usize, state: &State, open: &Conversation) -> Vec<Vec<Span<'static>>> {
    let is_own = |approval: &&Approval| {
        open.target()
            .is_some_and(|target| approval.agent == target.agent && approval.conversation == target.conversation)
    };
    match (&open.notice, state.approvals.iter().find(is_own)) {
        (_, Some(approval)) => {
            let text = describe_action(&approval.action);
            let head = format!("wants to {}: ", text.wish);
            let room = columns.saturating_sub(head.len() + 15);
            vec![vec![paint.bad(head), paint.plain(cut(text.subject, room)), paint.strong("  (Tab answers)")]]
        }
        (Some((text, is_error)), None) => {
            let text = sanitize::one_line(text);
            let lines = text::wrap(&text, columns).into_iter().take(MAX_NOTICE_LINES).map(|line| line.into_owned());
            lines.map(|line| vec![if *is_error { paint.bad(line) } else { paint.faint(line) }]).collect()
        }
        (None, None) if open.scroll > 0 => vec![vec![paint.faint(format!("{} more lines below (PgDn)", open.scroll))]],
        (None, None) if open.is_thinking => vec![vec![paint.faint("thinking …")]],
        (None, None) => vec![Vec::new()],
    }
}

/// Draws the entries, the last ones at the bottom.
fn draw_texts(buffer: &mut Buffer, area: Rect, paint: Paint, zone: &TimeZone, open: &mut Conversation) {
    let width = usize::from(area.width).saturating_sub(INDENT.len()).clamp(INDENT.len() + 1, MAX_WIDTH);
    let height = usize::from(area.height);
    let (earlier, is_loaded) = (open.earlier, open.is_loaded);
    let is_empty = open.is_empty();
    let (before, scroll) = (open.total_lines, open.scroll);
    let total: usize = open.entries().map(|entry| lines_of(entry, width)).sum();
    // Who reads further above stays there while more is said.
    let grown = if before > 0 && scroll > 0 { total.saturating_sub(before) } else { 0 };
    open.scroll = (scroll + grown).min(total.saturating_sub(height));
    open.total_lines = total;
    let mut rows = Rows::new(buffer, area);
    if is_empty {
        let text = match (is_loaded, open.target()) {
            (false, _) => "",
            (true, Some(_)) => "nothing was said yet; write below",
            (true, None) => "no messages",
        };
        return rows.line(vec![paint.faint(text)]);
    }
    let end = total - open.scroll;
    let start = end.saturating_sub(height);
    if start == 0 && earlier > 0 && total < height {
        rows.line(vec![paint.faint(format!("… {} before", pluralize(earlier, "message")))]);
    }
    let mut at = 0;
    for entry in open.entries() {
        let lines = lines_of(entry, width);
        if at + lines <= start {
            at += lines;
            continue;
        }
        if at >= end {
            break;
        }
        for spans in entry_lines(paint, zone, entry, width) {
            if at >= start && at < end {
                rows.line(spans);
            }
            at += 1;
        }
    }
}

/// Returns the number of lines of an entry, with its heading and the empty line before that.
fn lines_of(entry: &mut Entry, width: usize) -> usize {
    entry.lines(width - indent_of(entry.kind)).len() + head_of(entry)
}

/// Returns the number of lines before the text.
fn head_of(entry: &Entry) -> usize {
    match (entry.who.is_empty(), entry.kind) {
        (false, _) => 2,
        // What a model says after a tool is apart from its output.
        (true, Kind::Agent) => 1,
        (true, _) => 0,
    }
}

/// Returns the columns by which a text is indented further than what is said.
fn indent_of(kind: Kind) -> usize {
    if matches!(kind, Kind::Output | Kind::Failed) { INDENT.len() } else { 0 }
}

fn entry_lines(paint: Paint, zone: &TimeZone, entry: &mut Entry, width: usize) -> Vec<Vec<Span<'static>>> {
    let mut shown = Vec::new();
    let kind = entry.kind;
    if !entry.who.is_empty() {
        let at = entry.at.map(|at| at.to_zoned(zone.clone()).strftime("  %H:%M").to_string()).unwrap_or_default();
        let who = cut(&entry.who, width.saturating_sub(at.len()));
        let who = if kind == Kind::User { paint.user(who) } else { paint.agent(who) };
        shown.extend([Vec::new(), vec![who, paint.faint(at)]]);
    } else if head_of(entry) > 0 {
        shown.push(Vec::new());
    }
    for line in entry.lines(width - indent_of(kind)) {
        let line = format!("{}{line}", " ".repeat(indent_of(kind)));
        shown.push(match kind {
            Kind::User | Kind::Agent => vec![paint.plain(INDENT), paint.plain(line)],
            Kind::Tool => vec![paint.plain(INDENT), paint.tool(line)],
            Kind::Output | Kind::System | Kind::Note => vec![paint.plain(INDENT), paint.faint(line)],
            Kind::Failed => vec![paint.plain(INDENT), paint.bad(line)],
        });
    }
    shown
}
