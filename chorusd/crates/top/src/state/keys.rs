//! Keys of the list and of the conversation.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Effect, Link, State};
use crate::conversation::Source;
use crate::fleet::{Row, RowKey, Target};
use crate::panels::{ApprovalsPanel, Panel, Search};
use crate::requests::Request;

impl State {
    pub(super) fn on_key(&mut self, key: KeyEvent) {
        self.notice = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return self.effects.push(Effect::Leave),
                KeyCode::Char('z') => return self.effects.push(Effect::Suspend),
                KeyCode::Char('l') => return self.effects.push(Effect::Clear),
                _ => {}
            }
        }
        match self.panels.last() {
            None => self.on_list_key(key),
            Some(Panel::Conversation(open)) => match open.source {
                Source::Live(_) => self.on_live_key(key),
                Source::Saved { .. } => self.on_saved_key(key),
            },
            Some(Panel::Search(_)) => self.on_search_key(key),
            Some(Panel::Approvals(_)) => self.on_approval_key(key),
            Some(Panel::Confirm(_)) => self.on_confirm_key(key),
            Some(Panel::History(_) | Panel::Tree(_)) => self.on_sessions_key(key),
            Some(Panel::Help) => self.close_panel(),
        }
    }

    pub(super) fn on_paste(&mut self, text: &str) {
        match self.panels.last_mut() {
            Some(Panel::Conversation(open)) if open.target().is_some() => open.editor.paste(text),
            Some(Panel::Search(search)) => {
                search.editor.paste(&text.replace(['\r', '\n'], " "));
                self.search_changed();
            }
            _ => {}
        }
    }

    fn on_list_key(&mut self, key: KeyEvent) {
        let length = self.fleet.len();
        if let Some(step) = step_of(key, self.page, length) {
            self.selection.step(step, length);
            self.selected = self.fleet.row(self.selection.at).map(|row| row.key());
            return;
        }
        match key.code {
            KeyCode::Char('q') => self.effects.push(Effect::Leave),
            KeyCode::Char('?') | KeyCode::F(1) => self.panels.push(Panel::Help),
            KeyCode::Char('/') => self.panels.push(Panel::Search(Search::default())),
            KeyCode::Char('a') => self.panels.push(Panel::Approvals(ApprovalsPanel::default())),
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
        match row {
            // It has no conversation of its own.
            Row::Agent(known) if known.agent.import_source.is_some() && known.agent.context.is_none() => {
                self.open_history();
            }
            Row::Captured(known, session) => {
                let (agent, header) = (known.agent.name.clone(), &session.header);
                let title = header.description.clone().unwrap_or_else(|| header.session_id.clone());
                let id = header.id.to_string();
                self.open_saved(agent, id, title);
            }
            row => {
                if let RowKey::Conversation(target) = row.key() {
                    self.open_live(target);
                }
            }
        }
    }

    fn on_live_key(&mut self, key: KeyEvent) {
        let is_connected = self.link == Link::Connected;
        let page = self.page;
        let Some(open) = self.open() else { return };
        let Some(target) = open.target().cloned() else { return };
        match key.code {
            KeyCode::Esc => self.close_panel(),
            KeyCode::Enter if !is_connected => {
                open.notice = Some(("not sent: chorusd does not run; the text stays here".into(), true));
            }
            KeyCode::Enter => {
                if let Some(text) = open.take_message() {
                    self.request(Request::Send(target, text));
                }
            }
            KeyCode::Tab => {
                let wanted = self
                    .approvals
                    .iter()
                    .find(|approval| approval.agent == target.agent && approval.conversation == target.conversation);
                let selected = wanted.map(|approval| approval.id.clone());
                self.panels.push(Panel::Approvals(ApprovalsPanel { selected, scroll: 0 }));
            }
            KeyCode::Char('x') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                self.request(Request::Cancel(target));
            }
            KeyCode::PageUp | KeyCode::PageDown | KeyCode::Up | KeyCode::Down => scroll(&mut open.scroll, key, page),
            _ => {
                open.editor.on_key(key);
            }
        }
    }

    fn on_saved_key(&mut self, key: KeyEvent) {
        let page = self.page;
        let Some(open) = self.open() else { return };
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => self.close_panel(),
            KeyCode::Home | KeyCode::Char('g') => open.scroll = open.total_lines,
            KeyCode::End | KeyCode::Char('G') => open.scroll = 0,
            KeyCode::Char('r') => {
                let Source::Saved { agent, session, title } = &open.source else { return };
                let (target, session, title) = (Target::main(agent), session.parse(), title.clone());
                if let Ok(session) = session {
                    self.ask_to_restore(target, session, &title);
                }
            }
            _ => scroll(&mut open.scroll, key, page),
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
