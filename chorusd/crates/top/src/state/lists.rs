//! The history, the tree, the search, the approvals, and questions.

use chorus_proto::methods::approvals::Approval;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use uuid::Uuid;

use super::State;
use super::keys::step_of;
use crate::fleet::Target;
use crate::panels::{Confirm, Found, History, Panel, Selection, Tree, TreeLineKind};
use crate::requests::{Answer, Decision, Failure, Request};

/// Agents that a search lists by their names.
const MAX_NAMED: usize = 5;

/// A saved conversation in a list.
struct Chosen {
    id: Uuid,
    title: String,
}

impl State {
    pub(super) fn open_history(&mut self) {
        let Some(target) = self.selected_target() else { return };
        self.request(Request::History(target.agent.clone()));
        self.panels.push(Panel::History(History { target, sessions: None, total: 0, selection: Selection::default() }));
    }

    pub(super) fn open_tree(&mut self) {
        let Some(target) = self.selected_target() else { return };
        self.request(Request::Tree(target.clone()));
        self.panels.push(Panel::Tree(Tree {
            target,
            result: None,
            lines: Vec::new(),
            selection: Selection::default(),
        }));
    }

    /// Takes the answer for a list.
    pub(super) fn on_list(&mut self, request: Request, answer: Answer) {
        for panel in &mut self.panels {
            match (panel, &request) {
                (Panel::History(history), Request::History(agent)) if history.target.agent == *agent => {
                    if let Answer::Sessions(sessions, total) = answer {
                        (history.sessions, history.total) = (Some(sessions), total);
                        return;
                    }
                }
                (Panel::Tree(tree), Request::Tree(target)) if tree.target == *target => {
                    if let Answer::Tree(result) = answer {
                        tree.set(*result);
                        return;
                    }
                }
                (Panel::Search(search), Request::Search { number, .. }) => {
                    search.answered = *number;
                    if let Answer::Hits(result) = answer
                        && search.requested == *number
                    {
                        search.result = Some(*result);
                        search.error = None;
                    }
                    return self.search_changed();
                }
                _ => {}
            }
        }
    }

    pub(super) fn search_failed(&mut self, number: u64, failure: &Failure) {
        let Some(Panel::Search(search)) = self.panels.last_mut() else { return };
        search.answered = number;
        search.result = None;
        search.error = Some(failure.message.clone());
        self.search_changed();
    }

    pub(super) fn on_sessions_key(&mut self, key: KeyEvent) {
        let page = self.page;
        let (selection, length) = match self.panels.last_mut() {
            Some(Panel::History(history)) => (&mut history.selection, history.sessions.as_ref().map_or(0, Vec::len)),
            Some(Panel::Tree(tree)) => (&mut tree.selection, tree.lines.len()),
            _ => return,
        };
        if let Some(step) = step_of(key, page, length) {
            return selection.step(step, length);
        }
        let is_history = matches!(self.panels.last(), Some(Panel::History(_)));
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => self.close_panel(),
            // The other list of the same agent.
            KeyCode::Char('t') if is_history => {
                self.panels.pop();
                self.open_tree();
            }
            KeyCode::Char('h') if !is_history => {
                self.panels.pop();
                self.open_history();
            }
            KeyCode::Enter => match self.chosen() {
                Some((target, Some(Chosen { id, title }))) => self.open_saved(target.agent, id.to_string(), title),
                Some((target, None)) => self.open_live(target),
                None => {}
            },
            KeyCode::Char('r') => {
                if let Some((target, Some(Chosen { id, title }))) = self.chosen() {
                    self.ask_to_restore(target, id, &title);
                }
            }
            _ => {}
        }
    }

    /// Returns the selected session; no session for the live conversation.
    fn chosen(&self) -> Option<(Target, Option<Chosen>)> {
        let title = |description: Option<&String>, name: &str| description.cloned().unwrap_or_else(|| name.to_owned());
        match self.panels.last()? {
            Panel::History(history) => {
                let header = &history.sessions.as_ref()?.get(history.selection.at)?.header;
                let title = title(header.description.as_ref(), &header.session_id);
                Some((history.target.clone(), Some(Chosen { id: header.id, title })))
            }
            Panel::Tree(tree) => match tree.lines.get(tree.selection.at)?.kind {
                TreeLineKind::Session(at) => {
                    let session = tree.result.as_ref()?.sessions.get(at)?;
                    let title = title(session.description.as_ref(), &session.session_id);
                    Some((tree.target.clone(), Some(Chosen { id: session.id, title })))
                }
                TreeLineKind::Live => Some((tree.target.clone(), None)),
                TreeLineKind::Gap(_) => None,
            },
            _ => None,
        }
    }

    /// Asks before a session takes the place of the live conversation.
    pub(super) fn ask_to_restore(&mut self, target: Target, session: Uuid, title: &str) {
        let Some(target) = self.restore_target(target) else {
            return self.report("restore it into which agent? start with: chorusctl top --agent NAME", true);
        };
        let unsaved = self.fleet.find(&target).and_then(|row| Some(row.context()?.unsaved)).unwrap_or_default();
        let name = match &target.conversation {
            Some(conversation) => format!("{} ({conversation})", target.agent),
            None => target.agent.clone(),
        };
        let mut question = vec![format!("Load \"{title}\" as the live conversation of {name}?")];
        if unsaved > 0 {
            let messages = if unsaved == 1 { "message is" } else { "messages are" };
            question.push(format!("Its {unsaved} unsaved {messages} saved first."));
        }
        self.panels.push(Panel::Confirm(Confirm { question, request: Request::Restore { target, session } }));
    }

    /// Returns the conversation that a session of `target` is restored into: an agent that holds conversations of another program has
    /// none of its own.
    fn restore_target(&self, target: Target) -> Option<Target> {
        let is_importer = |name: &str| self.fleet.importers().any(|(importer, _)| importer == name);
        if !is_importer(&target.agent) {
            return Some(target);
        }
        let chosen = self.own_agent.clone().filter(|name| !is_importer(name));
        chosen.or_else(|| self.fleet.only_own_agent()).map(|name| Target::main(&name))
    }

    pub(super) fn on_confirm_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Char('y' | 'Y') => {
                if let Some(Panel::Confirm(confirm)) = self.panels.pop() {
                    self.request(confirm.request);
                }
            }
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc | KeyCode::Enter => {
                self.panels.pop();
                self.report("cancelled", false);
            }
            _ => {}
        }
    }

    pub(super) fn on_search_key(&mut self, key: KeyEvent) {
        let page = self.page;
        let Some(Panel::Search(search)) = self.panels.last_mut() else { return };
        // Letters are typed, so only other keys move.
        let step = match key.code {
            KeyCode::Char(_) | KeyCode::Home | KeyCode::End => None,
            _ => step_of(key, page, search.len()),
        };
        if let Some(step) = step {
            let length = search.len();
            return search.selection.step(step, length);
        }
        match key.code {
            KeyCode::Esc => self.close_panel(),
            KeyCode::Enter => self.open_found(),
            _ => {
                let before = search.editor.text().to_owned();
                if search.editor.on_key(key) && search.editor.text() != before {
                    self.search_changed();
                }
            }
        }
    }

    /// Requests the hits of what is typed, unless an earlier query is not answered yet.
    pub(super) fn search_changed(&mut self) {
        let Some(Panel::Search(search)) = self.panels.last_mut() else { return };
        let query = search.editor.text().trim().to_owned();
        search.number += 1;
        if search.requested != search.answered {
            return;
        }
        if search.is_current(&query) {
            return;
        }
        search.query.clone_from(&query);
        search.selection = Selection::default();
        if query.is_empty() {
            search.agents.clear();
            (search.result, search.error) = (None, None);
            return;
        }
        search.agents = self.fleet.named_like(&query, MAX_NAMED);
        search.requested = search.number;
        let number = search.number;
        self.request(Request::Search { query, number });
    }

    fn open_found(&mut self) {
        let Some(Panel::Search(search)) = self.panels.last() else { return };
        match search.found(search.selection.at) {
            None => {}
            Some(Found::Agent(name)) => {
                let target = Target::main(name);
                self.selected = Some(crate::fleet::RowKey::Conversation(target.clone()));
                self.place_selection();
                self.open_live(target);
            }
            Some(Found::Message(hit)) => {
                let agent = hit.agent_name.clone();
                match &hit.session {
                    Some(session) => {
                        let title = hit.title.clone().unwrap_or_else(|| session.session_id.clone());
                        let id = session.id.to_string();
                        self.open_saved(agent, id, title);
                    }
                    None => {
                        let conversation = hit.conversation.as_ref().map(|of| of.name.clone());
                        self.open_live(Target { agent, conversation });
                    }
                }
            }
        }
    }

    /// Returns the selected approval: the first, if the one that was selected is decided.
    pub(crate) fn selected_approval(&self) -> Option<(usize, &Approval)> {
        let Some(Panel::Approvals(panel)) = self.panels.last() else { return None };
        let selected = panel.selected.as_ref();
        let at = selected.and_then(|id| self.approvals.iter().position(|approval| approval.id == *id));
        let at = at.unwrap_or_default();
        Some((at, self.approvals.get(at)?))
    }

    pub(super) fn on_approval_key(&mut self, key: KeyEvent) {
        let page = self.page;
        let selected = self.selected_approval().map(|(at, approval)| {
            let possible = (approval.not_always.is_none(), !approval.patterns.is_empty(), approval.turn_allowed);
            (at, approval.id.clone(), approval.hash.clone(), possible)
        });
        let length = self.approvals.len();
        let Some(Panel::Approvals(panel)) = self.panels.last_mut() else { return };
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return self.close_panel(),
            KeyCode::PageUp => return panel.scroll = panel.scroll.saturating_sub(page),
            KeyCode::PageDown => return panel.scroll += page,
            _ => {}
        }
        let Some((at, id, hash, (has_always, has_pattern, has_turn))) = selected else { return };
        // The one that was shown is answered, also if the list has changed since.
        let was_shown = panel.selected.as_ref() == Some(&id);
        if let Some(step) = step_of(key, page, length) {
            let mut selection = Selection { at, top: 0 };
            selection.step(step, length);
            panel.scroll = 0;
            panel.selected = self.approvals.get(selection.at).map(|approval| approval.id.clone());
            return;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) || !was_shown {
            return;
        }
        let decision = match key.code {
            KeyCode::Char('y') => Decision::Once,
            KeyCode::Char('a') if has_always => Decision::Always,
            KeyCode::Char('p') if has_pattern => Decision::Pattern,
            KeyCode::Char('s') if has_turn => Decision::Turn,
            KeyCode::Char('n') => Decision::Deny,
            _ => return,
        };
        self.request(Request::Decide { id, hash, decision });
    }

    /// Notes which approval is shown, so that keys concern it.
    pub(crate) fn remember_shown_approval(&mut self) {
        let shown = self.selected_approval().map(|(_, approval)| approval.id.clone());
        if let Some(Panel::Approvals(panel)) = self.panels.last_mut()
            && panel.selected != shown
        {
            panel.selected = shown;
            panel.scroll = 0;
        }
    }
}
