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

use super::list::{tool_names, until};
use super::outbox;
use super::paint::{Paint, Rows, cut};
use super::panels::who;
use crate::conversation::{Anchor, Conversation, Source};
use crate::entries::{Entry, Kind};
use crate::outbox::Outbox;
use crate::requests::MAX_MESSAGES;
use crate::state::{Link, State};

const LIVE_KEYS: &[(&str, &str)] =
    &[("Enter", "send"), ("Esc", "back"), ("PgUp/PgDn", "scroll"), ("Tab", "approval"), ("Ctrl-C", "cancel/quit")];
const SAVED_KEYS: &[(&str, &str)] = &[("Esc", "back"), ("↑↓ PgUp/PgDn", "scroll"), ("r", "restore")];

/// Columns before texts, and before those of a message that was found.
const INDENT: &str = "  ";
const MARK: &str = "▌ ";
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
            let title = cut(title, rows.columns().saturating_sub(text::width(&name) + 3));
            rows.line(vec![paint.strong(name), paint.plain(format!(" · {title}"))]);
            let all = open.earlier;
            if let Some(notice) = &open.notice {
                let text = cut(&notice.text, rows.columns());
                return rows.line(vec![if notice.is_error { paint.bad(text) } else { paint.faint(text) }]);
            }
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
        facts.extend(row.record().agent.model.as_deref().map(|model| cut(model, 40)));
    }
    let mut used = text::width(&spans[0].content);
    for fact in facts {
        used += text::width(&fact) + 3;
        if used <= rows.columns() {
            spans.push(paint.plain(format!(" · {fact}")));
        }
    }
    rows.line(spans);
    let turn =
        row.and_then(|row| Some((row.record().turn_seconds(row.turn()?, state.now), row.tools().unwrap_or_default())));
    rows.line(vec![match (open.turn, turn) {
        _ if !open.is_attached && state.link == Link::Connected => paint.faint("opening …"),
        (Some(_), Some((seconds, tools))) => {
            let tools = if tools.is_empty() { String::new() } else { format!(" → {}", tool_names(&tools)) };
            paint.good(cut(&format!("running {}{tools}", duration::format_rounded(seconds)), rows.columns()))
        }
        (Some(_), None) => paint.good("running"),
        (None, _) if state.outboxes.get(target).is_some_and(Outbox::is_sending) => paint.faint("sending …"),
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
    let unsent = open.target().and_then(|target| state.outboxes.get(target));
    let most = usize::from(area.height) / 2;
    let unsent = unsent.map(|unsent| outbox::lines(unsent, paint, usize::from(area.width), most)).unwrap_or_default();
    let below = if is_live { notice.len() + unsent.len() + 2 } else { 1 };
    let below = u16::try_from(below).unwrap_or(area.height).min(area.height);
    let text_area = Rect { height: area.height - below, ..area };
    draw_texts(buffer, text_area, paint, &state.zone, open);
    let rest = Rect { y: text_area.bottom(), height: below, ..area };
    let mut rows = Rows::new(buffer, rest);
    unsent.into_iter().for_each(|line| rows.line(line));
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
    let mut lines = Vec::new();
    if let Some(approval) = state.approvals.iter().find(is_own) {
        let text = describe_action(&approval.action);
        let head = format!("wants to {}: ", text.wish);
        let room = columns.saturating_sub(text::width(&head) + 15);
        lines.push(vec![paint.bad(head), paint.plain(cut(text.subject, room)), paint.strong("  (Tab answers)")]);
    }
    if let Some(notice) = &open.notice {
        let text = sanitize::one_line(&notice.text);
        let wrapped = text::wrap(&text, columns).into_iter().take(MAX_NOTICE_LINES).map(|line| line.into_owned());
        lines.extend(wrapped.map(|line| vec![if notice.is_error { paint.bad(line) } else { paint.faint(line) }]));
    }
    if lines.is_empty() {
        lines.push(match open {
            open if open.scroll > 0 => vec![paint.faint(format!("{} more lines below (PgDn)", open.scroll))],
            open if open.is_thinking => vec![paint.faint("thinking …")],
            _ => Vec::new(),
        });
    }
    lines
}

/// Draws the entries, the last ones at the bottom.
fn draw_texts(buffer: &mut Buffer, area: Rect, paint: Paint, zone: &TimeZone, open: &mut Conversation) {
    let width = usize::from(area.width).saturating_sub(INDENT.len()).clamp(INDENT.len() + 1, MAX_WIDTH);
    let height = usize::from(area.height);
    let mut rows = Rows::new(buffer, area);
    if open.is_empty() {
        let text = match (open.is_loaded, open.target()) {
            (false, _) => "",
            (true, Some(_)) => "no messages yet; type below",
            (true, None) => "no messages",
        };
        return rows.line(vec![paint.faint(text)]);
    }
    let layout = Layout::of(open, width);
    let total = layout.total;
    open.scroll = layout.scroll(open, height).min(total.saturating_sub(height));
    (open.total_lines, open.height) = (total, height);
    let end = total - open.scroll;
    open.anchor = Anchor { scroll: open.scroll, ..layout.anchor(end.saturating_sub(1)) };
    let start = end.saturating_sub(height);
    if start == 0 && layout.head > 0 {
        rows.line(vec![paint.faint(earlier_text(open))]);
    }
    let first = layout.starts.partition_point(|at| *at <= start).saturating_sub(1);
    let mut at = layout.starts.get(first).copied().unwrap_or_default();
    let marked = open.marked.clone();
    for entry in open.entries().skip(first) {
        if at >= end {
            break;
        }
        let is_marked = marked.is_some() && entry.message == marked;
        for spans in entry_lines(paint, zone, entry, width, is_marked) {
            if at >= start && at < end {
                rows.line(spans);
            }
            at += 1;
        }
    }
}

/// Says how many messages are above those that are shown.
fn earlier_text(open: &Conversation) -> String {
    let earlier = pluralize(open.earlier, "message");
    match open.is_reaching {
        true => format!("… {earlier} before; loading …"),
        false if open.recorded() as u64 >= MAX_MESSAGES => format!("… {earlier} before; chorusctl show has them"),
        false => format!("… {earlier} before (PgUp)"),
    }
}

/// The lines of the entries of a conversation.
struct Layout {
    /// Lines above the first entry.
    head: usize,
    /// The first line of each entry.
    starts: Vec<usize>,
    /// The message of each entry that is the first one of a message.
    messages: Vec<Option<String>>,
    total: usize,
}

impl Layout {
    fn of(open: &mut Conversation, width: usize) -> Self {
        let head = usize::from(open.earlier > 0);
        let (mut starts, mut messages, mut total) = (Vec::new(), Vec::new(), head);
        for entry in open.entries() {
            starts.push(total);
            messages.push(entry.message.clone());
            total += lines_of(entry, width);
        }
        Self { head, starts, messages, total }
    }

    /// Returns the lines between the end and the last line to show: the same text as in the frame before, moved by what was scrolled
    /// since, or a message that was found.
    fn scroll(&self, open: &mut Conversation, height: usize) -> usize {
        if let Some(at) = open.focus.take().and_then(|focus| self.entry_of(&focus)) {
            // A few lines above it are in view.
            return self.total.saturating_sub(self.starts[at] + height - height / 4);
        }
        let line = self.line(&open.anchor).filter(|_| open.scroll > 0 && open.total_lines > 0);
        let Some(line) = line else { return open.scroll };
        (self.total.saturating_sub(line + 1) + open.scroll).saturating_sub(open.anchor.scroll)
    }

    fn entry_of(&self, message: &str) -> Option<usize> {
        self.messages.iter().position(|of| of.as_deref() == Some(message))
    }

    /// Returns the place of a line that stays when others are added or wrapped elsewhere.
    fn anchor(&self, line: usize) -> Anchor {
        let entry = self.starts.partition_point(|start| *start <= line).saturating_sub(1);
        let named = self.messages[..=entry].iter().rposition(Option::is_some);
        Anchor {
            scroll: 0,
            message: named.and_then(|at| self.messages[at].clone()),
            entries: entry - named.unwrap_or_default(),
            line: line.saturating_sub(self.starts[entry]),
        }
    }

    fn line(&self, anchor: &Anchor) -> Option<usize> {
        let named = match &anchor.message {
            Some(message) => self.entry_of(message)?,
            None => 0,
        };
        let entry = named + anchor.entries;
        let start = *self.starts.get(entry)?;
        let next = self.starts.get(entry + 1).copied().unwrap_or(self.total);
        Some((start + anchor.line).min(next.saturating_sub(1)))
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

fn entry_lines(
    paint: Paint,
    zone: &TimeZone,
    entry: &mut Entry,
    width: usize,
    is_marked: bool,
) -> Vec<Vec<Span<'static>>> {
    let mut shown = Vec::new();
    let indent = if is_marked { paint.strong(MARK) } else { paint.plain(INDENT) };
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
            Kind::User | Kind::Agent => vec![indent.clone(), paint.plain(line)],
            Kind::Tool => vec![indent.clone(), paint.tool(line)],
            Kind::Output | Kind::System | Kind::Note => vec![indent.clone(), paint.faint(line)],
            Kind::Failed => vec![indent.clone(), paint.bad(line)],
        });
    }
    shown
}
