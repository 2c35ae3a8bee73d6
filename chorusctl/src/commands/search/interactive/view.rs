//! Draws the screen.

use chorus_proto::methods::search::SearchHit;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::{Modifier, Style as ScreenStyle};
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span};

use super::super::hit::{describe_score, session_name, title_and_facts};
use super::layout::{HIT_ROWS, Layout};
use super::preview;
use super::state::State;
use crate::ui::full_screen::{marked_line, screen_style};
use crate::ui::marked_text::MarkedText;
use crate::ui::time::Clock;
use crate::ui::{Stderr, Style, sanitize, text};

const PROMPT: &str = "> ";
/// Columns before a hit, in which the selected one has a sign.
const MARGIN: usize = 2;
const SELECTED: &str = "▸ ";

/// The keys, the most important first: those that have no room are left out.
const QUERY_KEYS: [&str; 5] = ["Enter show", "↓ list", "Ctrl-R restore", "Ctrl-B branch", "Esc leave"];
const LIST_KEYS: [&str; 6] = ["Enter show", "r restore", "b branch", "↑↓ move", "/ edit query", "Esc leave"];

/// The parts of the screen that are no state.
#[derive(Debug)]
pub(super) struct View {
    pub(super) clock: Clock,
    /// Which conversations are searched, such as `--role user`.
    pub(super) scope: Vec<String>,
    /// Names the commands in hints.
    pub(super) stderr: Stderr,
}

impl View {
    pub(super) fn draw(&self, frame: &mut Frame<'_>, state: &mut State) {
        let layout = Layout::of(frame.area());
        state.scroll(layout.hits());
        draw_query(frame, layout.query, state);
        let buffer = frame.buffer_mut();
        self.draw_status(buffer, layout.status, state);
        match &state.failure {
            Some((error, hint)) => self.draw_failure(buffer, layout.list, error, hint.as_deref()),
            None => self.draw_hits(buffer, layout.list, state),
        }
        if layout.has_preview() {
            draw_border(buffer, layout.border);
            preview::draw(buffer, layout.preview, state, &self.clock);
        }
        draw_footer(buffer, layout.footer, state);
    }

    fn draw_status(&self, buffer: &mut Buffer, area: Rect, state: &State) {
        let note = state.status();
        let mut parts = vec![sanitize::one_line(&self.stderr.name_commands(&note.text))];
        if let Some(hit) = state.selected_hit().filter(|hit| !hit.parts.is_empty()) {
            parts.push(describe_score(hit.score, &hit.parts));
        }
        if !note.is_error {
            parts.extend(state.searched.as_deref().map(|agent| describe_searched(agent, &state.hits)));
            parts.extend(self.scope.iter().cloned());
        }
        parts.retain(|part| !part.is_empty());
        let style = screen_style(if note.is_error { Style::Bad } else { Style::Faint });
        let line = parts.join(" · ");
        put(buffer, area, 0, Span::styled(text::truncate(&line, usize::from(area.width)), style).into());
    }

    fn draw_failure(&self, buffer: &mut Buffer, area: Rect, error: &str, hint: Option<&str>) {
        let hint = hint.map(|hint| (Style::Good, "hint:", self.stderr.name_commands(hint)));
        let mut row = 0;
        for (style, label, sentence) in [Some((Style::Bad, "error:", error.to_owned())), hint].into_iter().flatten() {
            let sentence = format!("{label} {}", sanitize::one_line(&sentence));
            let wrapped = text::wrap_sentence(&sentence, usize::from(area.width).max(1));
            for line in wrapped.lines() {
                let line = match line.strip_prefix(label) {
                    Some(rest) => Line::from(vec![Span::styled(label, screen_style(style)), rest.to_owned().into()]),
                    None => line.to_owned().into(),
                };
                put(buffer, area, row, line);
                row += 1;
            }
        }
    }

    fn draw_hits(&self, buffer: &mut Buffer, area: Rect, state: &State) {
        let visible = usize::from(area.height.div_ceil(HIT_ROWS));
        for (row, (index, hit)) in state.hits.iter().enumerate().skip(state.first).take(visible).enumerate() {
            let row = u16::try_from(row).unwrap_or(u16::MAX).saturating_mul(HIT_ROWS);
            let is_selected = index == state.selected;
            self.draw_hit(buffer, area, row, hit, is_selected, is_selected && state.has_list_focus);
        }
    }

    fn draw_hit(&self, buffer: &mut Buffer, area: Rect, row: u16, hit: &SearchHit, is_selected: bool, has_focus: bool) {
        let room = usize::from(area.width).saturating_sub(MARGIN);
        let name = text::truncate(&sanitize::one_line(&session_name(hit)), room).into_owned();
        // All agents are named: only the status line says which one was searched.
        let title_room = room.saturating_sub(text::width(&name) + 2);
        let (title, facts) = title_and_facts(&self.clock, hit, None, Some(title_room));
        let sign = if is_selected { SELECTED } else { "" };
        let mut place = Line::from(vec![
            Span::raw(format!("{sign:MARGIN$}")),
            Span::styled(name, screen_style(Style::Id)),
            Span::raw("  "),
            Span::styled(title, screen_style(Style::Strong)),
            Span::styled(facts, screen_style(Style::Faint)),
        ]);
        if has_focus {
            place.style = ScreenStyle::new().add_modifier(Modifier::REVERSED);
        }
        put(buffer, area, row, place);
        let snippet = MarkedText::new(&hit.snippet, &hit.marks).pieces(room.saturating_sub(2).max(1), 1);
        if let Some(pieces) = snippet.into_iter().next() {
            let mut line = marked_line(pieces);
            line.spans.insert(0, Span::raw(" ".repeat(MARGIN + 2)));
            put(buffer, area, row + 1, line);
        }
    }
}

/// Names the agent that was searched, and what was found besides: its hits are not all of this agent.
fn describe_searched(agent: &str, hits: &[SearchHit]) -> String {
    let has_imported = hits.iter().any(|hit| hit.imported && hit.agent_name != agent);
    format!("{}{}", sanitize::one_line(agent), if has_imported { " and imported conversations" } else { "" })
}

/// Writes a line into a row of the area, if it has that row.
pub(super) fn put(buffer: &mut Buffer, area: Rect, row: u16, line: Line<'_>) {
    if row < area.height {
        buffer.set_line(area.x, area.y + row, &line, area.width);
    }
}

fn draw_query(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let room = usize::from(area.width).saturating_sub(PROMPT.len());
    let (shown, column) = state.query.visible(room);
    let prompt = Span::styled(PROMPT, screen_style(Style::Strong));
    let query = Line::from(vec![prompt, Span::raw(sanitize::multi_line(&shown).into_owned())]);
    put(frame.buffer_mut(), area, 0, query);
    let column = u16::try_from(PROMPT.len() + column).unwrap_or(u16::MAX);
    if !state.has_list_focus && state.question().is_none() && column < area.width && area.height > 0 {
        frame.set_cursor_position(Position::new(area.x + column, area.y));
    }
}

fn draw_border(buffer: &mut Buffer, area: Rect) {
    let sign = if area.width == 1 { "│" } else { "─" };
    for position in area.positions() {
        buffer.set_string(position.x, position.y, sign, screen_style(Style::Faint));
    }
}

fn draw_footer(buffer: &mut Buffer, area: Rect, state: &State) {
    let width = usize::from(area.width);
    if let Some(question) = state.question() {
        // The end, with the keys, is what must be read.
        let question = sanitize::one_line(&question);
        let question = text::truncate_start(&question, width).into_owned();
        return put(buffer, area, 0, Span::styled(question, screen_style(Style::Strong)).into());
    }
    let keys: &[&str] = if state.has_list_focus { &LIST_KEYS } else { &QUERY_KEYS };
    let footer = fitting_keys(keys, width);
    put(buffer, area, 0, Span::styled(footer, screen_style(Style::Faint)).into());
}

/// Joins the keys. If they have no room, those before the last are left out.
fn fitting_keys(keys: &[&str], width: usize) -> String {
    let [others @ .., last] = keys else { return String::new() };
    (0..=others.len())
        .rev()
        .map(|count| [&others[..count], &[*last]].concat().join(" · "))
        .find(|line| text::width(line) <= width)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_that_leaves_stays_longest() {
        let keys = ["Enter show", "↓ list", "Esc leave"];
        assert_eq!(fitting_keys(&keys, 80), "Enter show · ↓ list · Esc leave");
        assert_eq!(fitting_keys(&keys, 25), "Enter show · Esc leave");
        assert_eq!(fitting_keys(&keys, 9), "Esc leave");
        assert_eq!(fitting_keys(&keys, 5), "");
        for keys in [QUERY_KEYS.as_slice(), &LIST_KEYS] {
            assert_eq!(fitting_keys(keys, 80), keys.join(" · "));
        }
    }
}
