//! The history, the tree, the search, and questions.

use crossterm::event::{KeyCode, KeyEvent};
use uuid::Uuid;

use super::State;
use super::keys::step_of;
use crate::fleet::Target;
use crate::panels::{Confirm, History, Panel, Search, SearchRow, Selection, Tree, TreeLineKind};
use crate::requests::{Answer, Failure, Request};

/// Agents that a search lists by their names.
const MAX_NAMED: usize = 5;

/// A saved conversation in a list.
struct SelectedSession {
    id: Uuid,
    title: String,
}

impl State {
    pub(super) fn open_history(&mut self) {
        let Some(target) = self.selected_target() else { return };
        self.request(Request::History(target.agent.clone()));
        self.push_panel(Panel::History(History {
            target,
            sessions: None,
            failure: None,
            total: 0,
            selection: Selection::default(),
        }));
    }

    pub(super) fn open_tree(&mut self) {
        let Some(target) = self.selected_target() else { return };
        self.request(Request::Tree(target.clone()));
        self.push_panel(Panel::Tree(Tree {
            target,
            result: None,
            failure: None,
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
                (Panel::Search(search), Request::Search { number, query }) if search.requested == Some(*number) => {
                    search.requested = None;
                    if let Answer::Hits(result) = answer {
                        search.result = Some(*result);
                        search.answered_query.clone_from(query);
                        search.error = None;
                    }
                    return self.search_changed();
                }
                _ => {}
            }
        }
    }

    /// Shows why a list did not arrive.
    pub(super) fn list_failed(&mut self, request: &Request, failure: &Failure) {
        for panel in &mut self.panels {
            match (panel, request) {
                (Panel::History(history), Request::History(agent)) if history.target.agent == *agent => {
                    history.failure = Some(failure.text());
                }
                (Panel::Tree(tree), Request::Tree(target)) if tree.target == *target => {
                    tree.failure = Some(failure.text());
                }
                _ => {}
            }
        }
    }

    /// Handles the failure of a search. One that only failed because the daemon is away is requested again when it is back.
    pub(super) fn search_failed(&mut self, number: u64, failure: &Failure, is_unreachable: bool) {
        let Some(search) = self.search().filter(|search| search.requested == Some(number)) else { return };
        search.requested = None;
        search.result = None;
        if is_unreachable {
            search.query.clear();
            search.error = Some("no connection to chorusd".into());
        } else {
            search.error = Some(failure.text());
            self.search_changed();
        }
    }

    fn search(&mut self) -> Option<&mut Search> {
        self.panels.iter_mut().rev().find_map(|panel| match panel {
            Panel::Search(search) => Some(search),
            _ => None,
        })
    }

    /// Requests what open panels lack, after the daemon was away.
    pub(super) fn request_panels_again(&mut self) {
        let mut requests = Vec::new();
        for panel in &mut self.panels {
            match panel {
                Panel::History(history) if history.sessions.is_none() => {
                    history.failure = None;
                    requests.push(Request::History(history.target.agent.clone()));
                }
                Panel::Tree(tree) if tree.result.is_none() => {
                    tree.failure = None;
                    requests.push(Request::Tree(tree.target.clone()));
                }
                Panel::Conversation(open) if !open.is_loaded && open.target().is_none() => {
                    requests.push(open.record_request());
                }
                _ => {}
            }
        }
        requests.into_iter().for_each(|request| self.request(request));
        if let Some(search) = self.search() {
            search.query.clear();
            search.requested = None;
            self.search_changed();
        }
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
                self.pop_panel();
                self.open_tree();
            }
            KeyCode::Char('h') if !is_history => {
                self.pop_panel();
                self.open_history();
            }
            KeyCode::Enter => match self.selected_session() {
                Some((target, Some(SelectedSession { id, title }))) => {
                    self.open_saved(target.agent, id.to_string(), title, None)
                }
                Some((target, None)) => self.open_live(target),
                None => {}
            },
            KeyCode::Char('r') => {
                if let Some((target, Some(SelectedSession { id, title }))) = self.selected_session() {
                    self.ask_to_restore(target, id, &title);
                }
            }
            _ => {}
        }
    }

    /// Returns the selected session; no session for the live conversation.
    fn selected_session(&self) -> Option<(Target, Option<SelectedSession>)> {
        let title = |description: Option<&String>, name: &str| description.cloned().unwrap_or_else(|| name.to_owned());
        match self.panels.last()? {
            Panel::History(history) => {
                let header = &history.sessions.as_ref()?.get(history.selection.at)?.header;
                let title = title(header.description.as_ref(), &header.session_id);
                Some((history.target.clone(), Some(SelectedSession { id: header.id, title })))
            }
            Panel::Tree(tree) => match tree.lines.get(tree.selection.at)?.kind {
                TreeLineKind::Session(at) => {
                    let session = tree.result.as_ref()?.sessions.get(at)?;
                    let title = title(session.description.as_ref(), &session.session_id);
                    Some((tree.target.clone(), Some(SelectedSession { id: session.id, title })))
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
            return self.report("no agent selected to restore into; start with: chorusctl top --agent NAME", true);
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
        self.push_panel(Panel::Confirm(Confirm { question, request: Request::Restore { target, session } }));
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
                if let Some(Panel::Confirm(confirm)) = self.pop_panel()
                    && self.request_action(confirm.request)
                {
                    self.restored_from = Some(self.panel_changes);
                    self.report("restoring …", false);
                }
            }
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc | KeyCode::Enter => {
                self.pop_panel();
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
            KeyCode::Enter => self.open_search_row(),
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
        let number = self.queries + 1;
        let Some(search) = self.search() else { return };
        let query = search.editor.text().trim().to_owned();
        if search.requested.is_some() || search.query == query {
            return;
        }
        search.query.clone_from(&query);
        search.selection = Selection::default();
        search.error = None;
        if query.is_empty() {
            search.agents.clear();
            search.answered_query.clear();
            search.result = None;
            return;
        }
        search.requested = Some(number);
        self.queries = number;
        let agents = self.fleet.named_like(&query, MAX_NAMED);
        if let Some(search) = self.search() {
            search.agents = agents;
        }
        self.request(Request::Search { query, number });
    }

    /// Requests the hits of a query again whose index was not complete.
    pub(super) fn search_again(&mut self) {
        let number = self.queries + 1;
        let Some(search) = self.search() else { return };
        if search.requested.is_none() && search.is_current() && search.is_partial() {
            search.requested = Some(number);
            let query = search.query.clone();
            self.queries = number;
            self.request(Request::Search { query, number });
        }
    }

    fn open_search_row(&mut self) {
        let Some(Panel::Search(search)) = self.panels.last() else { return };
        match search.row(search.selection.at) {
            None => {}
            Some(SearchRow::Agent(name)) => {
                let target = Target::main(name);
                self.selected = Some(crate::fleet::RowKey::Conversation(target.clone()));
                self.place_selection();
                self.open_live(target);
            }
            Some(SearchRow::Message(_)) if !search.is_current() => self.report("still searching", false),
            Some(SearchRow::Message(hit)) => {
                let (agent, message) = (hit.agent_name.clone(), hit.message);
                match &hit.session {
                    Some(session) => {
                        let title = hit.title.clone().unwrap_or_else(|| session.session_id.clone());
                        let id = session.id.to_string();
                        self.open_saved(agent, id, title, message);
                    }
                    None => {
                        let conversation = hit.conversation.as_ref().map(|of| of.name.clone());
                        self.open_live_at(Target { agent, conversation }, message);
                    }
                }
            }
        }
    }
}
