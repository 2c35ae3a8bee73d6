//! The two lines above everything, and the one below.

use chorus_proto::methods::cluster::NodeState;
use chorus_proto::methods::daemon::{DiscordInfo, DiscordState};
use chorus_proto::methods::{capture, cluster};
use chorus_proto::pluralize::pluralize;
use chorus_terminal_text::{duration, sanitize, text, units};
use jiff::Timestamp;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::text::Span;

use super::paint::{Paint, Rows, cut, fit};
use crate::state::{Link, Reported, State};

/// Draws the daemon, and what belongs to it.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &State) {
    let paint = Paint::new(state.has_color);
    let mut rows = Rows::new(buffer, area);
    let Some(status) = &state.status else {
        let text = if state.link == Link::Connecting { "connecting to chorusd …" } else { "loading …" };
        return rows.line(vec![paint.faint(text)]);
    };
    let totals = state.fleet.totals();
    let version = cut(&status.daemon.version, 20);
    let uptime = u64::try_from(state.now.as_second() - status.daemon.started_at.as_second()).unwrap_or_default();
    let mut facts = vec![format!("up {}", duration::format_rounded(uptime))];
    let agents = pluralize(totals.agents as u64, "agent");
    facts.push(format!("{}, {} active", group(&agents, totals.agents), totals.active));
    if totals.turns > 0 {
        facts.push(pluralize(totals.turns as u64, "turn"));
    }
    let cost = totals.cost_usd().map(|cost| format!("{}, ", format_cost(cost))).unwrap_or_default();
    facts.push(format!("today {cost}{}", units::format_token_count(totals.tokens)));
    rows.line(vec![
        paint.strong(format!("chorusd {version}{}", on_host(state))),
        paint.plain(format!(" · {}", facts.join(" · "))),
    ]);
    rows.line(health_line(paint, state, &status.discord));
}

/// Formats US dollars, with cents only if they are enough.
pub(super) fn format_cost(amount: f64) -> String {
    if amount >= 0.1 { format!("${amount:.2}") } else { units::format_dollars(amount) }
}

/// Groups the digits of the number before a word.
fn group(counted: &str, number: usize) -> String {
    counted.replacen(&number.to_string(), &units::group_digits(number as u64), 1)
}

fn health_line(paint: Paint, state: &State, discord: &DiscordInfo) -> Vec<Span<'static>> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut push = |span| {
        if !spans.is_empty() {
            spans.push(paint.faint(" · "));
        }
        spans.push(span);
    };
    if !state.approvals.is_empty() {
        push(paint.bad(format!("{} (a)", pluralize(state.approvals.len() as u64, "approval"))));
    }
    push(paint.plain(pluralize(state.running_tasks(), "running task")));
    push(describe_discord(paint, discord));
    match &state.capture {
        Reported::Absent => {}
        Reported::Failed => push(paint.bad("capture: not known")),
        Reported::Value(capture) => push(describe_capture(paint, capture)),
    }
    match &state.cluster {
        Reported::Absent => {}
        Reported::Failed => push(paint.bad("cluster: not known")),
        Reported::Value(cluster) => push(describe_cluster(paint, cluster)),
    }
    spans
}

fn describe_capture(paint: Paint, capture: &capture::StatusResult) -> Span<'static> {
    let on = capture.sources.iter().filter(|source| source.on);
    let conversations: u64 = on.clone().map(|source| source.conversations).sum();
    let failed: u64 = on.clone().map(|source| source.failed).sum();
    match (on.count(), capture.paused) {
        (0, _) => paint.faint("capture off"),
        (_, true) => paint.plain("capture paused"),
        _ if failed > 0 => paint.bad(format!("capture on, {} failed", units::group_digits(failed))),
        _ => paint.good(format!("capture on, {}", pluralize(conversations, "conversation"))),
    }
}

fn describe_cluster(paint: Paint, cluster: &cluster::StatusResult) -> Span<'static> {
    let silent = cluster.nodes.iter().filter(|node| node.state == NodeState::Silent);
    let silent: Vec<String> = silent.map(|node| cut(&node.name, 20)).collect();
    match silent.as_slice() {
        [] => paint.good(format!("cluster {}", pluralize(cluster.nodes.len() as u64, "node"))),
        silent => paint.bad(format!("cluster: no heartbeat from {}", silent.join(", "))),
    }
}

fn describe_discord(paint: Paint, info: &DiscordInfo) -> Span<'static> {
    let why = info.why.as_deref().map(|why| format!(": {}", cut(why, 60))).unwrap_or_default();
    match info.state {
        _ if info.connected && info.why.is_none() => paint.good("Discord connected"),
        _ if info.connected => paint.bad(format!("Discord connected{why}")),
        None | Some(DiscordState::Off) => paint.faint("Discord off"),
        Some(DiscordState::Connecting) => paint.plain("Discord connecting"),
        Some(DiscordState::Stopped) => paint.bad(format!("Discord stopped{why}")),
        Some(DiscordState::Connected | DiscordState::Waiting) => paint.bad(format!("Discord not connected{why}")),
    }
}

/// Draws that the daemon cannot be reached.
pub(super) fn draw_lost(buffer: &mut Buffer, area: Rect, state: &State, since: Timestamp) {
    let seconds = u64::try_from(state.now.as_second() - since.as_second()).unwrap_or_default();
    let reason = state.link_failure.as_ref().map(|failure| format!(": {}", failure.text())).unwrap_or_default();
    let time = duration::format_rounded(seconds);
    let host = on_host(state);
    draw_alert(buffer, area, state, &format!("no connection to chorusd{host} for {time}; reconnecting{reason}"));
}

/// Draws that the daemon is connected but does not answer.
pub(super) fn draw_silent(buffer: &mut Buffer, area: Rect, state: &State, since: Timestamp) {
    let since = since.to_zoned(state.zone.clone()).strftime("%H:%M:%S");
    draw_alert(buffer, area, state, &format!("chorusd does not answer since {since}"));
}

fn draw_alert(buffer: &mut Buffer, area: Rect, state: &State, line: &str) {
    let paint = Paint::new(state.has_color);
    // It covers what was there.
    let padded = fit(line, usize::from(area.width), false);
    buffer.set_style(area, ratatui_core::style::Style::reset());
    Rows::new(buffer, area).line(vec![paint.bad(padded)]);
}

/// Draws what was done, or the keys.
pub(super) fn draw_footer(buffer: &mut Buffer, area: Rect, state: &State, keys: &[(&str, &str)]) {
    let paint = Paint::new(state.has_color);
    let mut rows = Rows::new(buffer, area);
    match &state.notice {
        Some(notice) => {
            let line = cut(&notice.text, rows.columns());
            rows.line(vec![if notice.is_error { paint.bad(line) } else { paint.good(line) }]);
        }
        None => {
            let mut spans = Vec::new();
            let mut used = 0;
            for (key, what) in keys {
                let gap = if spans.is_empty() { 0 } else { 2 };
                let width = gap + text::width(key) + 1 + text::width(what);
                if used + width > rows.columns() {
                    break;
                }
                used += width;
                spans.extend([paint.plain(" ".repeat(gap)), paint.strong(*key), paint.faint(format!(" {what}"))]);
            }
            rows.line(spans);
        }
    }
}

/// Returns where the daemon is, if it is on another machine.
fn on_host(state: &State) -> String {
    state.host.as_ref().map(|host| format!(" on {}", sanitize::one_line(host))).unwrap_or_default()
}
