//! The state of the screen, and how keys and answers change it. Nothing here waits or draws.

mod texts;

use chorus_proto::Message;
use chorus_proto::methods::search::{SearchHit, SearchParams, SearchResult};

use super::super::next_commands::agent_to_name;
use super::Step;
use super::query_line::QueryLine;
use super::requests::{Answer, Request};
use crate::error::Error;
use crate::ui::full_screen::Key;

/// An action outside of the screen.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    Leave,
    Suspend,
    /// Draws everything again.
    Redraw,
    /// Shows the place of the hit.
    Show(Box<SearchHit>),
    /// Leaves and continues from the hit.
    Continue(Step, Box<SearchHit>),
}

/// A step that replaces a conversation with unsaved messages, until it is confirmed.
#[derive(Debug)]
struct Question {
    step: Step,
    hit: Box<SearchHit>,
    unsaved: u64,
}

/// A line about what just happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// Messages of a hit.
#[derive(Debug)]
pub(super) struct Preview {
    hit: Box<SearchHit>,
    pub(super) messages: Vec<Message>,
}

#[derive(Debug)]
pub(super) struct State {
    /// The parameters that all searches have in common.
    search: SearchParams,
    is_filtered: bool,
    /// The agent of the command line.
    named_agent: Option<String>,
    pub(super) query: QueryLine,
    /// True if keys are for the results, not for the query.
    pub(super) has_list_focus: bool,
    pub(super) hits: Vec<SearchHit>,
    /// The agent that was searched, if it was only one.
    pub(super) searched: Option<String>,
    pub(super) selected: usize,
    /// The first hit on the screen.
    pub(super) first: usize,
    /// The query that the hits answer; `None` before the first answer and without a query.
    found: Option<String>,
    /// Error and hint of that query.
    pub(super) failure: Option<(String, Option<String>)>,
    note: Option<Note>,
    warning: Option<String>,
    question: Option<Question>,
    /// The step for which unsaved messages are to be counted, and whether the daemon is asked.
    check: Option<(Step, Box<SearchHit>, bool)>,
    preview: Option<Preview>,
    /// True while a request is not answered.
    is_asking: bool,
}

impl State {
    pub(super) fn new(search: SearchParams, is_filtered: bool, named_agent: Option<String>) -> Self {
        Self {
            search,
            is_filtered,
            named_agent,
            query: QueryLine::default(),
            has_list_focus: false,
            hits: Vec::new(),
            searched: None,
            selected: 0,
            first: 0,
            found: None,
            failure: None,
            note: None,
            warning: None,
            question: None,
            check: None,
            preview: None,
            is_asking: false,
        }
    }

    /// Returns the agent that requests and commands about the hit must name.
    pub(super) fn agent_of(&self, hit: &SearchHit) -> Option<String> {
        agent_to_name(hit, self.named_agent.as_deref(), self.searched.as_deref()).map(str::to_owned)
    }

    pub(super) fn selected_hit(&self) -> Option<&SearchHit> {
        self.hits.get(self.selected)
    }

    /// Returns the messages of the selected hit; `None` until they are there.
    pub(super) fn preview(&self) -> Option<&Preview> {
        let hit = self.selected_hit()?;
        self.preview.as_ref().filter(|preview| *preview.hit == *hit)
    }

    /// Handles a key; `page` is the number of hits on the screen.
    pub(super) fn on_key(&mut self, key: Key, page: usize) -> Option<Effect> {
        self.note = None;
        // Any key withdraws a step that is not confirmed.
        self.check = None;
        if let Some(question) = self.question.take() {
            return self.on_reply(question, &key);
        }
        match key {
            Key::Esc | Key::Ctrl('c') => return Some(Effect::Leave),
            Key::Ctrl('z') => return Some(Effect::Suspend),
            Key::Ctrl('l') => return Some(Effect::Redraw),
            Key::Enter => return self.selected_hit().cloned().map(|hit| Effect::Show(Box::new(hit))),
            Key::Ctrl('r') => self.start(Step::Restore),
            Key::Ctrl('b') => self.start(Step::Branch),
            Key::Tab | Key::BackTab => self.has_list_focus = !self.has_list_focus && !self.hits.is_empty(),
            Key::Ctrl('n') => self.move_by(1),
            Key::Ctrl('p') => self.move_by(-1),
            Key::PageDown => self.move_in_list(page.cast_signed()),
            Key::PageUp => self.move_in_list(-page.cast_signed()),
            key if self.has_list_focus => self.on_list_key(key),
            Key::Down => self.has_list_focus = !self.hits.is_empty(),
            key => {
                self.on_query_key(key);
                self.on_query_changed();
            }
        }
        None
    }

    fn on_reply(&mut self, question: Question, key: &Key) -> Option<Effect> {
        match key {
            Key::Char('y' | 'Y') => Some(Effect::Continue(question.step, question.hit)),
            Key::Ctrl('c') => Some(Effect::Leave),
            _ => {
                self.note("cancelled; nothing was changed");
                None
            }
        }
    }

    fn on_list_key(&mut self, key: Key) {
        match key {
            Key::Char('r') => self.start(Step::Restore),
            Key::Char('b') => self.start(Step::Branch),
            Key::Down | Key::Char('j') => self.move_by(1),
            Key::Up | Key::Char('k') if self.selected > 0 => self.move_by(-1),
            Key::Home => self.selected = 0,
            Key::End => self.selected = self.hits.len().saturating_sub(1),
            Key::Up | Key::Char('/') => self.has_list_focus = false,
            Key::Backspace => {
                self.has_list_focus = false;
                self.query.delete_before();
                self.on_query_changed();
            }
            _ => {}
        }
    }

    fn on_query_key(&mut self, key: Key) {
        let query = &mut self.query;
        match key {
            Key::Char(c) => query.insert(c.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => query.insert(&text),
            Key::Backspace => query.delete_before(),
            Key::Delete | Key::Ctrl('d') => query.delete_after(),
            Key::Ctrl('w') => query.delete_word(),
            Key::Ctrl('u') => query.delete_to_start(),
            Key::Ctrl('k') => query.delete_to_end(),
            Key::Left => query.move_left(),
            Key::Right => query.move_right(),
            Key::Home | Key::Ctrl('a') => query.move_to_start(),
            Key::End | Key::Ctrl('e') => query.move_to_end(),
            _ => {}
        }
    }

    fn on_query_changed(&mut self) {
        if self.query.query().is_none() {
            self.show_hits(None, Vec::new());
            (self.failure, self.warning) = (None, None);
        }
    }

    fn move_in_list(&mut self, by: isize) {
        self.has_list_focus = !self.hits.is_empty();
        self.move_by(by);
    }

    fn move_by(&mut self, by: isize) {
        self.selected = self.selected.saturating_add_signed(by).min(self.hits.len().saturating_sub(1));
    }

    /// Starts to restore or to branch from the selected hit: first the daemon is asked what would be replaced.
    fn start(&mut self, step: Step) {
        let Some(hit) = self.selected_hit().cloned() else { return };
        if step == Step::Restore && hit.session.is_none() {
            self.note("this conversation is live, so there is nothing to restore; b branches from the message");
            return;
        }
        self.check = Some((step, Box::new(hit), false));
    }

    fn note(&mut self, text: &str) {
        self.note = Some(Note { text: text.to_owned(), is_error: false });
    }

    /// Reports an error of something else than a search.
    pub(super) fn report(&mut self, error: &Error) {
        let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        self.note = Some(Note { text: format!("error: {}{hint}", error.message()), is_error: true });
    }

    /// Returns the request to send next, unless one is not answered. `has_preview` says whether there is room for a preview.
    pub(super) fn next_request(&mut self, has_preview: bool) -> Option<Request> {
        if self.is_asking {
            return None;
        }
        let request = self.due_request(has_preview)?;
        self.is_asking = true;
        Some(request)
    }

    fn due_request(&mut self, has_preview: bool) -> Option<Request> {
        if let Some(query) = self.query.query().filter(|query| self.found.as_ref() != Some(query)) {
            return Some(Request::Search { query });
        }
        if let Some((step, hit, is_asked @ false)) = &mut self.check {
            *is_asked = true;
            let (step, hit) = (*step, hit.clone());
            let agent = self.agent_of(&hit);
            return Some(Request::Unsaved { step, hit, agent });
        }
        if !has_preview || self.preview().is_some() {
            return None;
        }
        let hit = Box::new(self.selected_hit()?.clone());
        let agent = self.agent_of(&hit);
        Some(Request::Preview { hit, agent })
    }

    /// Takes an answer. One that is outdated is dropped.
    pub(super) fn on_answer(&mut self, answer: Answer) -> Option<Effect> {
        self.is_asking = false;
        match answer {
            Answer::Found { query, result } => {
                if self.query.query().as_ref() == Some(&query) {
                    self.on_found(query, result);
                }
            }
            Answer::Previewed { hit, messages } => self.preview = Some(Preview { hit, messages }),
            Answer::Unsaved { step, hit, result } => {
                let is_due = self.check.as_ref().is_some_and(|check| (check.0, &check.1) == (step, &hit));
                if is_due {
                    self.check = None;
                    match result {
                        Ok(0) => return Some(Effect::Continue(step, hit)),
                        Ok(unsaved) => self.question = Some(Question { step, hit, unsaved }),
                        Err(error) => self.report(&error),
                    }
                }
            }
        }
        None
    }

    fn on_found(&mut self, query: String, result: Result<SearchResult, Error>) {
        match result {
            Ok(result) => {
                let percent = result.index.percent_indexed();
                let progress = percent.map(|percent| format!("{percent} % indexed; results may be missing"));
                self.warning = progress.or_else(|| result.warnings.into_iter().next());
                self.failure = None;
                self.searched = result.agent_name;
                self.show_hits(Some(query), result.hits);
            }
            Err(error) => {
                self.failure = Some((error.message().to_owned(), error.hint().map(str::to_owned)));
                self.warning = None;
                self.show_hits(Some(query), Vec::new());
            }
        }
    }

    fn show_hits(&mut self, query: Option<String>, hits: Vec<SearchHit>) {
        (self.found, self.hits, self.selected, self.first) = (query, hits, 0, 0);
        self.has_list_focus &= !self.hits.is_empty();
    }

    /// Scrolls so that the selected hit is among the `visible` ones on the screen.
    pub(super) fn scroll(&mut self, visible: usize) {
        self.first = self.first.min(self.selected);
        self.first = self.first.max((self.selected + 1).saturating_sub(visible.max(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(number: u64, is_live: bool) -> SearchHit {
        let id = "9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604";
        let session = (!is_live).then(|| serde_json::json!({"id": id, "short_id": "9f1c27d4", "session_id": "s"}));
        serde_json::from_value(serde_json::json!({
            "agent_name": "api", "imported": false, "session": session, "title": null, "message": number, "role": "user",
            "speaker": "mara", "at": "2026-11-20T09:05:00Z", "snippet": "x", "marks": [], "score": 1.0,
        }))
        .expect("a hit")
    }

    fn found(query: &str, hits: Vec<SearchHit>) -> Answer {
        let result = serde_json::json!({
            "agent_name": "api", "hits": hits, "index": {"complete": true, "indexed": 1, "total": 1, "messages": 1},
        });
        Answer::Found { query: query.into(), result: Ok(serde_json::from_value(result).expect("a result")) }
    }

    fn state() -> State {
        State::new(SearchParams::default(), false, None)
    }

    fn type_text(state: &mut State, text: &str) {
        for c in text.chars() {
            assert_eq!(state.on_key(Key::Char(c), 10), None);
        }
    }

    /// A state with these hits, after the search for `x`.
    fn with_hits(hits: Vec<SearchHit>) -> State {
        let mut state = state();
        type_text(&mut state, "x");
        assert!(state.next_request(false).is_some());
        assert_eq!(state.on_answer(found("x", hits)), None);
        state
    }

    #[test]
    fn there_is_one_request_at_a_time_and_an_outdated_answer_is_dropped() {
        let mut state = state();
        assert!(state.next_request(true).is_none(), "nothing is typed");
        type_text(&mut state, "a");
        assert!(matches!(state.next_request(true), Some(Request::Search { query }) if query == "a"));
        type_text(&mut state, "bc");
        assert!(state.next_request(true).is_none(), "the first is not answered");
        assert_eq!(state.on_answer(found("a", vec![hit(1, false)])), None);
        assert!(state.hits.is_empty());
        assert!(matches!(state.next_request(true), Some(Request::Search { query }) if query == "abc abc*"));
        assert_eq!(state.on_answer(found("abc abc*", vec![hit(1, false)])), None);
        assert!(matches!(state.next_request(true), Some(Request::Preview { .. })));
        let answer = Answer::Previewed { hit: Box::new(hit(1, false)), messages: Vec::new() };
        assert_eq!(state.on_answer(answer), None);
        assert!(state.next_request(true).is_none(), "an empty preview is not asked for again");
    }

    #[test]
    fn a_step_waits_for_the_number_of_unsaved_messages() {
        let mut state = with_hits(vec![hit(1, false), hit(2, false)]);
        let chosen = Box::new(hit(1, false));
        let answer = |number| Answer::Unsaved { step: Step::Restore, hit: chosen.clone(), result: Ok(number) };
        state.on_key(Key::Ctrl('r'), 10);
        assert!(matches!(state.next_request(false), Some(Request::Unsaved { step: Step::Restore, .. })));
        assert_eq!(state.on_answer(answer(0)), Some(Effect::Continue(Step::Restore, chosen.clone())));
        // Another key withdraws it.
        state.on_key(Key::Ctrl('r'), 10);
        assert!(state.next_request(false).is_some());
        state.on_key(Key::Ctrl('n'), 10);
        assert_eq!((state.on_answer(answer(0)), state.question()), (None, None));
        state.on_key(Key::Ctrl('p'), 10);
        state.on_key(Key::Ctrl('r'), 10);
        assert!(state.next_request(false).is_some());
        assert_eq!(state.on_answer(answer(2)), None);
        assert_eq!(
            state.question().as_deref(),
            Some("2 unsaved messages will be saved first; restore 9f1c27d4 up to message 1? [y/N]")
        );
        assert_eq!(state.on_key(Key::Char('y'), 10), Some(Effect::Continue(Step::Restore, chosen)));
    }

    #[test]
    fn letters_are_typed_into_the_query_unless_the_list_has_the_focus() {
        let mut state = with_hits(vec![hit(1, false)]);
        type_text(&mut state, "rb");
        assert_eq!(state.query.text(), "xrb");
        let mut state = with_hits(vec![hit(1, false)]);
        state.on_key(Key::Tab, 10);
        type_text(&mut state, "rzb");
        assert!(matches!(state.next_request(false), Some(Request::Unsaved { step: Step::Branch, .. })));
        assert_eq!(state.query.text(), "x");
        // Without results there is nothing to move in.
        let mut state = with_hits(Vec::new());
        state.on_key(Key::Down, 10);
        type_text(&mut state, "r");
        assert_eq!((state.has_list_focus, state.query.text()), (false, "xr"));
    }

    #[test]
    fn a_live_conversation_is_not_restored() {
        let mut state = with_hits(vec![hit(1, true)]);
        state.on_key(Key::Ctrl('r'), 10);
        assert!(state.next_request(false).is_none() && state.status().text.contains("nothing to restore"));
        state.on_key(Key::Ctrl('b'), 10);
        assert!(state.next_request(false).is_some());
    }

    #[test]
    fn the_selected_hit_is_visible_in_any_window() {
        let mut state = with_hits((1..=20).map(|number| hit(number, false)).collect());
        for (selected, visible, first) in
            [(0, 10, 0), (10, 10, 1), (19, 10, 10), (15, 10, 10), (9, 10, 9), (9, 0, 9), (12, 1, 12)]
        {
            state.selected = selected;
            state.scroll(visible);
            assert_eq!(state.first, first, "{selected} of {visible}");
        }
    }
}
