//! Keys of the list and of the conversation.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Effect, State};
use crate::conversation::{Conversation, Source};
use crate::fleet::{Row, RowKey, Target};
use crate::line_editor::TOO_LONG;
use crate::panels::{Panel, Search};
use crate::requests::Request;

impl State {
    pub(super) fn on_key(&mut self, key: KeyEvent) {
        self.notice = None;
        let is_second = std::mem::take(&mut self.is_leaving_armed);
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return self.on_interrupt(is_second),
                KeyCode::Char('z') => return self.effects.push(Effect::Suspend),
                KeyCode::Char('l') => return self.effects.push(Effect::Clear),
                _ => {}
            }
        }
        // A letter with another modifier than Shift is no answer and no command, except in a line that is typed.
        let is_letter = matches!(key.code, KeyCode::Char(_)) && (key.modifiers - KeyModifiers::SHIFT).is_empty();
        let has_line = match self.panels.last() {
            Some(Panel::Search(_)) => true,
            Some(Panel::Approvals(panel)) => panel.reason.is_some(),
            Some(Panel::Conversation(open)) => open.target().is_some(),
            _ => false,
        };
        if matches!(key.code, KeyCode::Char(_)) && !is_letter && !has_line {
            return;
        }
        match self.panels.last() {
            None => self.on_list_key(key, is_second),
            Some(Panel::Conversation(open)) => match open.source {
                Source::Live(_) => self.on_live_key(key),
                Source::Saved { .. } => self.on_saved_key(key),
            },
            Some(Panel::Search(_)) => self.on_search_key(key),
            Some(Panel::Approvals(_)) => self.on_approval_key(key),
            Some(Panel::Confirm(_)) => self.on_confirm_key(key),
            Some(Panel::History(_) | Panel::Tree(_)) => self.on_sessions_key(key),
            Some(Panel::Help(_)) => self.on_help_key(key),
        }
    }

    /// Cancels the turn that is shown, or warns about a text that is not sent. Leaves the screen otherwise, and the second time.
    fn on_interrupt(&mut self, is_second: bool) {
        let open = self.panels.last().and_then(|panel| match panel {
            Panel::Conversation(open) => Some((open.target().cloned()?, open.turn, open.editor.text().is_empty())),
            _ => None,
        });
        self.is_leaving_armed = true;
        match open.filter(|_| !is_second) {
            Some((target, Some(turn), _)) => {
                if self.request_action(Request::Cancel(target, Some(turn))) {
                    self.report("cancelling the turn; Ctrl-C again quits", false);
                }
            }
            Some((_, None, false)) => self.report("the text is not sent; Ctrl-C again quits without it", true),
            _ => self.leave(is_second),
        }
    }

    /// Leaves the screen, unless something is typed in a closed conversation: then only the second time.
    fn leave(&mut self, is_second: bool) {
        self.is_leaving_armed = true;
        match self.outboxes.drafted().filter(|_| !is_second) {
            Some(target) => {
                let text = format!("a text for {} is not sent; press the key again to quit without it", target.agent);
                self.report(text, true);
            }
            None => self.effects.push(Effect::Leave),
        }
    }

    pub(super) fn on_paste(&mut self, text: &str) {
        match self.panels.last_mut() {
            Some(Panel::Conversation(open)) if open.target().is_some() => open.on_paste(text),
            Some(Panel::Search(search)) => {
                if search.editor.paste(&text.replace(['\r', '\n'], " ")) {
                    self.search_changed();
                } else {
                    self.report(TOO_LONG, true);
                }
            }
            Some(Panel::Approvals(panel)) => {
                if let Some(reason) = &mut panel.reason
                    && !reason.paste(&text.replace(['\r', '\n'], " "))
                {
                    self.report(TOO_LONG, true);
                }
            }
            _ => {}
        }
    }

    fn on_list_key(&mut self, key: KeyEvent, is_second: bool) {
        let length = self.fleet.len();
        if let Some(step) = step_of(key, self.page, length) {
            self.selection.step(step, length);
            self.selected = self.fleet.row(self.selection.at).map(|row| row.key());
            self.selected_id = self.selected.as_ref().and_then(|key| self.fleet.id(key.agent()));
            self.is_selection_lost = false;
            return;
        }
        match key.code {
            KeyCode::Char('q') => self.leave(is_second),
            KeyCode::Char('?') | KeyCode::F(1) => self.push_panel(Panel::Help(0)),
            KeyCode::Char('/') => self.push_panel(Panel::Search(Search::default())),
            KeyCode::Char('a') => {
                let target = self.selected_target();
                self.open_approvals(target.as_ref());
            }
            KeyCode::Char('h') => self.open_history(),
            KeyCode::Char('t') => self.open_tree(),
            KeyCode::Enter => self.open_selected(),
            _ => {}
        }
    }

    /// Returns the conversation of the selected row; that of the agent for a captured one.
    pub(super) fn selected_target(&self) -> Option<Target> {
        Some(match self.fleet.row(self.selection.at)?.key() {
            RowKey::Conversation(target) => target,
            RowKey::Captured(agent, _) => Target::main(&agent),
        })
    }

    fn open_selected(&mut self) {
        let Some(row) = self.fleet.row(self.selection.at) else { return };
        if std::mem::take(&mut self.is_selection_lost) {
            let name = row.record().agent.name.clone();
            return self.report(format!("{name} is selected now; Enter opens it"), false);
        }
        match row {
            // It has no conversation of its own.
            Row::Agent(record) if record.agent.import_source.is_some() && record.agent.context.is_none() => {
                self.open_history();
            }
            Row::Captured(record, session) => {
                let (agent, header) = (record.agent.name.clone(), &session.header);
                let title = header.description.clone().unwrap_or_else(|| header.session_id.clone());
                let id = header.id.to_string();
                self.open_saved(agent, id, title, None);
            }
            row => {
                if let RowKey::Conversation(target) = row.key() {
                    self.open_live(target);
                }
            }
        }
    }

    fn on_live_key(&mut self, key: KeyEvent) {
        let page = self.page;
        let Some(open) = self.open() else { return };
        let Some(target) = open.target().cloned() else { return };
        match key.code {
            KeyCode::Esc => self.close_panel(),
            KeyCode::Enter if !key.modifiers.contains(KeyModifiers::ALT) => self.send_typed(target),
            KeyCode::Tab => self.open_approvals(Some(&target)),
            KeyCode::Char('x') if key.modifiers == KeyModifiers::CONTROL => {
                let turn = open.turn;
                self.request_action(Request::Cancel(target, turn));
            }
            KeyCode::Up if self.edit_refused(&target) => {}
            KeyCode::PageUp | KeyCode::PageDown | KeyCode::Up | KeyCode::Down => {
                if let Some(open) = self.open() {
                    scroll(&mut open.scroll, key, page);
                }
                self.reach_further(key);
            }
            _ => {
                if let Some(open) = self.open() {
                    open.on_edit_key(key);
                }
            }
        }
    }

    fn on_saved_key(&mut self, key: KeyEvent) {
        let page = self.page;
        let Some(open) = self.open() else { return };
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => self.close_panel(),
            KeyCode::Home | KeyCode::Char('g') => {
                open.scroll = open.total_lines;
                self.reach_further(key);
            }
            KeyCode::End | KeyCode::Char('G') => open.scroll = 0,
            KeyCode::Char('r') => {
                let Source::Saved { agent, session, title } = &open.source else { return };
                let (target, session, title) = (Target::main(agent), session.parse(), title.clone());
                if let Ok(session) = session {
                    self.ask_to_restore(target, session, &title);
                }
            }
            _ => {
                scroll(&mut open.scroll, key, page);
                self.reach_further(key);
            }
        }
    }

    /// Scrolls the help, or closes it.
    fn on_help_key(&mut self, key: KeyEvent) {
        let page = self.page;
        let Some(Panel::Help(first)) = self.panels.last_mut() else { return };
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => *first = first.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => *first += 1,
            KeyCode::PageUp | KeyCode::Char('b') => *first = first.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ') => *first += page,
            KeyCode::Home | KeyCode::Char('g') => *first = 0,
            KeyCode::End | KeyCode::Char('G') => *first = usize::MAX / 2,
            _ => self.close_panel(),
        }
    }

    /// Requests messages further above if a key has moved above the first line.
    fn reach_further(&mut self, key: KeyEvent) {
        let is_upwards = match key.code {
            KeyCode::Up | KeyCode::PageUp | KeyCode::Home => true,
            KeyCode::Char(c) => matches!(c, 'k' | 'b' | 'g'),
            _ => false,
        };
        let request = if is_upwards { self.open().and_then(Conversation::reach_further) } else { None };
        if let Some(request) = request {
            self.request(request);
        }
    }
}

/// Scrolls a conversation: the number counts lines from its end.
fn scroll(lines: &mut usize, key: KeyEvent, page: usize) {
    match key.code {
        KeyCode::Up | KeyCode::Char('k') => *lines += 1,
        KeyCode::Down | KeyCode::Char('j') => *lines = lines.saturating_sub(1),
        KeyCode::PageUp | KeyCode::Char('b') => *lines += page,
        KeyCode::PageDown | KeyCode::Char(' ') => *lines = lines.saturating_sub(page),
        _ => {}
    }
}

/// Returns by how many rows a key moves in a list; `None` if it does something else.
pub(super) fn step_of(key: KeyEvent, page: usize, length: usize) -> Option<isize> {
    let page = isize::try_from(page.max(1)).unwrap_or(isize::MAX);
    let all = isize::try_from(length).unwrap_or(isize::MAX);
    Some(match key.code {
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::PageUp => -page,
        KeyCode::PageDown => page,
        KeyCode::Home | KeyCode::Char('g') => -all,
        KeyCode::End | KeyCode::Char('G') => all,
        _ => return None,
    })
}
