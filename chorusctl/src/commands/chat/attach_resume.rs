//! The part of a conversation that an attached chat has shown: after the line to another machine was lost, the rest is shown, and nothing twice.

use std::collections::{HashMap, HashSet, VecDeque};

use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::methods::conversations::AttachParams;
use chorus_proto::methods::send::TurnEvent;
use chorus_proto::{CallError, Message, Role};
use chorus_remote::DaemonAddress;
use uuid::Uuid;

/// Messages that are read first, and if the last one that was shown is not among them.
const FEW: u64 = 50;
const MANY: u64 = 1_000;

/// A piece of a turn that was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Thinking(String),
    Tool(String),
    Result(String),
}

/// The part that was shown since the chat was attached.
#[derive(Debug)]
pub(super) struct ShownConversation {
    daemon: DaemonAddress,
    params: AttachParams,
    is_attached: bool,
    /// Messages that were shown, or that were there before.
    seen: HashSet<String>,
    /// The last message before the pieces of `turn`.
    begin: Option<String>,
    /// The pieces since `begin`.
    turn: Vec<Piece>,
    running: Option<Uuid>,
    /// Pieces that come once more.
    repeated: VecDeque<Piece>,
    /// Messages that were read before they arrived, each with the pieces that follow it.
    early: HashMap<String, Vec<Piece>>,
    /// No piece has arrived since the chat was attached: it is not known which message `running` answers.
    is_fresh: bool,
    /// Questions that were shown.
    asked: HashSet<String>,
}

impl ShownConversation {
    pub(super) fn new(daemon: DaemonAddress, params: AttachParams) -> Self {
        Self {
            daemon,
            params,
            is_attached: false,
            seen: HashSet::new(),
            begin: None,
            turn: Vec::new(),
            running: None,
            repeated: VecDeque::new(),
            early: HashMap::new(),
            is_fresh: true,
            asked: HashSet::new(),
        }
    }

    /// Returns true once the chat was attached.
    pub(super) fn is_attached(&self) -> bool {
        self.is_attached
    }

    /// Returns what is to be shown when `event` arrives.
    ///
    /// # Errors
    /// The messages that were missed cannot be read.
    pub(super) fn accept(&mut self, event: TurnEvent) -> Result<Vec<TurnEvent>, CallError> {
        if let TurnEvent::Attached { turn_id, .. } = &event {
            let turn = *turn_id;
            if self.is_attached {
                let messages = self.read_messages()?;
                return Ok(self.resume(turn, &messages));
            }
            self.begin_with(turn, &self.read_last(FEW)?);
            return Ok(vec![event]);
        }
        Ok(self.filter(event).into_iter().collect())
    }

    /// Records what was there when the chat was attached.
    fn begin_with(&mut self, turn: Option<Uuid>, messages: &[Message]) {
        self.is_attached = true;
        self.running = turn;
        self.seen.extend(messages.iter().map(|message| message.id.clone()));
        self.begin = begin_of_turn(messages).map(|index| messages[index].id.clone());
        let after = begin_of_turn(messages).map_or(0, |index| index + 1);
        self.turn = messages[after..].iter().flat_map(pieces).collect();
    }

    /// Returns the event, or what is new in it.
    fn filter(&mut self, event: TurnEvent) -> Option<TurnEvent> {
        match event {
            TurnEvent::Message { ref id, role, .. } => {
                if !self.seen.insert(id.clone()) {
                    if let Some(pieces) = self.early.remove(id) {
                        self.repeated = pieces.into();
                    }
                    return None;
                }
                self.repeated.clear();
                if role != Role::ToolResult && (self.running.is_none() || self.is_fresh) {
                    self.begin = Some(id.clone());
                    self.turn.clear();
                    self.is_fresh = false;
                }
                Some(event)
            }
            TurnEvent::Started { turn_id } => (self.running.replace(turn_id) != Some(turn_id)).then_some(event),
            TurnEvent::Ended { .. } => {
                self.running = None;
                self.repeated.clear();
                Some(event)
            }
            TurnEvent::Text(text) => self.new_text(text, false).map(TurnEvent::Text),
            TurnEvent::Thinking(text) => self.new_text(text, true).map(TurnEvent::Thinking),
            TurnEvent::Tool { ref id, .. } => self.is_new(Piece::Tool(id.clone())).then_some(event),
            TurnEvent::Result { ref id, .. } => self.is_new(Piece::Result(id.clone())).then_some(event),
            TurnEvent::Ask { ref approval } => self.asked.insert(approval.id.clone()).then_some(event),
            event => Some(event),
        }
    }

    /// Returns false if the piece was shown before, otherwise records it.
    fn is_new(&mut self, piece: Piece) -> bool {
        self.is_fresh = false;
        if let Some(at) = self.repeated.iter().position(|repeated| *repeated == piece) {
            // What is before it has come, too, or does not come again.
            self.repeated.drain(..=at);
            return false;
        }
        self.record(piece);
        true
    }

    /// Returns the part of a text that was not shown before, and records it.
    fn new_text(&mut self, text: String, is_thinking: bool) -> Option<String> {
        self.is_fresh = false;
        let mut new = text.as_str();
        while !new.is_empty() {
            let shown = match self.repeated.pop_front() {
                Some(Piece::Text(shown)) if !is_thinking => shown,
                Some(Piece::Thinking(shown)) if is_thinking => shown,
                // Thinking is not stored.
                Some(Piece::Thinking(_)) => continue,
                Some(other) => {
                    self.repeated.push_front(other);
                    break;
                }
                None => break,
            };
            if let Some(rest) = new.strip_prefix(shown.as_str()) {
                new = rest;
            } else if let Some(rest) = shown.strip_prefix(new) {
                let rest = rest.to_owned();
                self.repeated.push_front(if is_thinking { Piece::Thinking(rest) } else { Piece::Text(rest) });
                return None;
            } else {
                // Something else was said.
                self.repeated.clear();
            }
        }
        if new.is_empty() {
            return None;
        }
        self.record(if is_thinking { Piece::Thinking(new.to_owned()) } else { Piece::Text(new.to_owned()) });
        Some(new.to_owned())
    }

    fn record(&mut self, piece: Piece) {
        match (self.turn.last_mut(), piece) {
            (Some(Piece::Text(text)), Piece::Text(more)) | (Some(Piece::Thinking(text)), Piece::Thinking(more)) => {
                text.push_str(&more);
            }
            (_, piece) => self.turn.push(piece),
        }
    }

    /// Returns what was missed, when the chat is attached again and `turn` runs. `messages` are those of the conversation.
    fn resume(&mut self, turn: Option<Uuid>, messages: &[Message]) -> Vec<TurnEvent> {
        let known = messages.iter().position(|message| Some(&message.id) == self.begin.as_ref());
        // The pieces of a running turn come again.
        let is_same_turn = turn.is_some() && turn == self.running && !self.is_fresh;
        let mut shown: VecDeque<Piece> = self.turn.iter().cloned().collect();
        let mut missed = Vec::new();
        let ended = self.running.filter(|_| !is_same_turn);
        let mut is_open = ended.is_some() && !self.is_fresh;
        let end = TurnEvent::Ended { turn_id: ended.unwrap_or_default(), reason: None };
        self.early.clear();
        let mut early = None;
        for message in messages.iter().skip(known.map_or(0, |index| index + 1)) {
            if matches!(message.role, Role::Assistant | Role::ToolResult) {
                if !is_same_turn && !self.seen.contains(&message.id) {
                    let new = self.new_pieces(message, &mut shown);
                    is_open |= !new.is_empty();
                    missed.extend(new);
                }
                if let Some(follow) = early.as_ref().and_then(|id| self.early.get_mut(id)) {
                    follow.extend(pieces(message));
                }
                continue;
            }
            early = None;
            if self.seen.insert(message.id.clone()) {
                if std::mem::take(&mut is_open) {
                    missed.push(end.clone());
                }
                missed.push(message_event(message));
                shown.clear();
                self.early.insert(message.id.clone(), Vec::new());
                early = Some(message.id.clone());
            }
        }
        if is_open && turn.is_none() {
            missed.push(end);
        }
        if !is_same_turn {
            let begin = begin_of_turn(messages);
            self.begin = begin.map(|index| messages[index].id.clone());
            self.turn = messages[begin.map_or(0, |index| index + 1)..].iter().flat_map(pieces).collect();
            (self.running, self.is_fresh) = (turn, true);
        }
        self.repeated = if turn.is_some() { self.turn.iter().cloned().collect() } else { VecDeque::new() };
        missed
    }

    /// Returns what a message of a turn has that was not shown, and removes from `shown` what was.
    fn new_pieces(&self, message: &Message, shown: &mut VecDeque<Piece>) -> Vec<TurnEvent> {
        let mut new = Vec::new();
        if message.role == Role::ToolResult {
            let id = message.tool_call_id.clone().unwrap_or_default();
            if !take(shown, &Piece::Result(id.clone())) {
                let name = message.name.clone().unwrap_or_default();
                new.push(TurnEvent::Result { id, name, is_error: message.is_error, output: None, message: None });
            }
            return new;
        }
        let text = shown.iter().position(|piece| match piece {
            Piece::Text(text) => message.content.trim().starts_with(text.trim()),
            _ => false,
        });
        let rest = match text.and_then(|at| shown.drain(..=at).next_back()) {
            Some(Piece::Text(text)) => {
                message.content.strip_prefix(text.as_str()).map(str::to_owned).unwrap_or_default()
            }
            _ => message.content.clone(),
        };
        if !rest.trim().is_empty() {
            new.push(TurnEvent::Text(rest));
        }
        for call in &message.tool_calls {
            if !take(shown, &Piece::Tool(call.id.clone())) {
                new.push(TurnEvent::Tool { id: call.id.clone(), name: call.name.clone(), gist: None });
            }
        }
        new
    }

    /// Reads the messages from the last one that was shown on, or all of another context.
    fn read_messages(&self) -> Result<Vec<Message>, CallError> {
        let is_known = |messages: &[Message]| messages.iter().any(|message| Some(&message.id) == self.begin.as_ref());
        for last in [FEW, MANY] {
            let messages = self.read_last(last)?;
            if is_known(&messages) || (messages.len() as u64) < last {
                return Ok(messages);
            }
        }
        self.read(ShowParams { offset: Some(0), ..self.show_params() })
    }

    fn read_last(&self, last: u64) -> Result<Vec<Message>, CallError> {
        self.read(ShowParams { last: Some(last), ..self.show_params() })
    }

    fn show_params(&self) -> ShowParams {
        ShowParams {
            agent: self.params.agent.clone(),
            conversation: self.params.conversation.clone(),
            ..ShowParams::default()
        }
    }

    fn read(&self, mut params: ShowParams) -> Result<Vec<Message>, CallError> {
        let mut client = self.daemon.connect()?;
        let mut messages = Vec::new();
        loop {
            let page = client.call::<Show>(&params)?;
            messages.extend(page.messages);
            match page.next.filter(|next| Some(*next) > params.offset) {
                Some(next) => (params.offset, params.last) = (Some(next), None),
                None => return Ok(messages),
            }
        }
    }
}

/// Returns the index of the message that the last turn answers.
fn begin_of_turn(messages: &[Message]) -> Option<usize> {
    messages.iter().rposition(|message| message.role == Role::User)
}

/// Removes a piece, and what is before it. Returns false if it is not there.
fn take(shown: &mut VecDeque<Piece>, piece: &Piece) -> bool {
    let at = shown.iter().position(|shown| shown == piece);
    at.is_some_and(|at| shown.remove(at).is_some())
}

fn pieces(message: &Message) -> Vec<Piece> {
    match message.role {
        Role::Assistant => {
            let text = Some(message.content.clone()).filter(|text| !text.is_empty()).map(Piece::Text);
            text.into_iter().chain(message.tool_calls.iter().map(|call| Piece::Tool(call.id.clone()))).collect()
        }
        Role::ToolResult => message.tool_call_id.clone().map(Piece::Result).into_iter().collect(),
        Role::System | Role::User => Vec::new(),
    }
}

fn message_event(message: &Message) -> TurnEvent {
    TurnEvent::Message {
        id: message.id.clone(),
        role: message.role,
        text: message.content.clone(),
        author: message.author.as_ref().map(|author| author.name.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use chorus_proto::paths::InstancePaths;
    use serde_json::json;

    use super::*;

    fn shown() -> ShownConversation {
        let path = PathBuf::from("/nonexistent");
        let places =
            InstancePaths { home: path.clone(), socket: path.clone(), config: path, socket_is_explicit: false };
        ShownConversation::new(places.into(), AttachParams::default())
    }

    fn message(id: &str, role: &str, text: &str) -> Message {
        let value = json!({"id": id, "role": role, "content": text, "timestamp": "2026-01-01T00:00:00Z"});
        serde_json::from_value(value).expect("a message")
    }

    /// Returns the texts of events, each message in brackets.
    fn texts(events: &[TurnEvent]) -> String {
        let text = |event: &TurnEvent| match event {
            TurnEvent::Text(text) => text.clone(),
            TurnEvent::Message { text, .. } => format!("[{text}]"),
            TurnEvent::Ended { .. } => ".".to_owned(),
            _ => String::new(),
        };
        events.iter().map(text).collect()
    }

    fn hear(shown: &mut ShownConversation, events: Vec<TurnEvent>) -> String {
        let heard: Vec<TurnEvent> = events.into_iter().filter_map(|event| shown.filter(event)).collect();
        texts(&heard)
    }

    fn event(id: &str, text: &str) -> TurnEvent {
        TurnEvent::Message { id: id.into(), role: Role::User, text: text.into(), author: None }
    }

    const TURN: Uuid = Uuid::from_u128(1);

    fn in_a_turn() -> ShownConversation {
        let mut shown = shown();
        shown.begin_with(None, &[message("m0", "user", "before"), message("a0", "assistant", "yes")]);
        let events =
            vec![event("m1", "why?"), TurnEvent::Started { turn_id: TURN }, TurnEvent::Text("Because ".to_owned())];
        assert_eq!(hear(&mut shown, events), "[why?]Because ");
        shown
    }

    #[test]
    fn a_turn_that_still_runs_goes_on_where_it_was() {
        let mut shown = in_a_turn();
        let now = [message("m0", "user", "before"), message("a0", "assistant", "yes"), message("m1", "user", "why?")];
        assert_eq!(texts(&shown.resume(Some(TURN), &now)), "");
        let replayed = ["Because it", " is so."].map(|text| TurnEvent::Text(text.to_owned())).to_vec();
        assert_eq!(hear(&mut shown, replayed), "it is so.");
        // Lost once more, and in the middle of what is repeated.
        assert_eq!(texts(&shown.resume(Some(TURN), &now)), "");
        assert_eq!(hear(&mut shown, vec![TurnEvent::Text("Beca".to_owned())]), "");
        assert_eq!(hear(&mut shown, vec![TurnEvent::Text("use it is so. Yes".to_owned())]), " Yes");
    }

    #[test]
    fn a_turn_that_has_ended_is_completed_with_what_came_after() {
        let mut shown = in_a_turn();
        let now = [
            message("m1", "user", "why?"),
            message("a1", "assistant", "Because it is so."),
            message("m2", "user", "and then?"),
            message("a2", "assistant", "Nothing."),
        ];
        assert_eq!(texts(&shown.resume(None, &now)), "it is so..[and then?]Nothing..");
        // It was read before it arrived.
        let late = vec![
            event("m2", "and then?"),
            TurnEvent::Started { turn_id: Uuid::from_u128(2) },
            TurnEvent::Text("Nothing.".to_owned()),
            TurnEvent::Text(" At all.".to_owned()),
        ];
        assert_eq!(hear(&mut shown, late), " At all.");
        let now = [&now[..3], &[message("a2", "assistant", "Nothing. At all.")]].concat();
        assert_eq!(texts(&shown.resume(None, &now)), ".", "the end of the turn");
        assert_eq!(texts(&shown.resume(None, &now)), "");
    }

    #[test]
    fn a_turn_whose_message_is_not_stored_yet_is_not_taken_for_the_one_before() {
        let mut shown = in_a_turn();
        let next = Uuid::from_u128(2);
        let now = [message("m1", "user", "why?"), message("a1", "assistant", "Because it is so.")];
        assert_eq!(texts(&shown.resume(Some(next), &now)), "it is so.");
        // Lost once more, before anything arrives.
        let now = [&now[..], &[message("m2", "user", "and then?")]].concat();
        assert_eq!(texts(&shown.resume(Some(next), &now)), "[and then?]");
        let rest = vec![event("m2", "and then?"), TurnEvent::Text("Because".to_owned())];
        assert_eq!(hear(&mut shown, rest), "Because");
        let mut shown = in_a_turn();
        assert_eq!(texts(&shown.resume(Some(next), &now[..2])), "it is so.");
        let rest = vec![event("m2", "and then?"), TurnEvent::Text("Because ".to_owned())];
        assert_eq!(hear(&mut shown, rest), "[and then?]Because ");
        assert_eq!(texts(&shown.resume(Some(next), &now)), "");
        assert_eq!(hear(&mut shown, vec![TurnEvent::Text("Because I say so.".to_owned())]), "I say so.");
    }

    #[test]
    fn what_a_running_turn_has_said_is_read_and_comes_again() {
        let mut shown = in_a_turn();
        let now = [
            message("m1", "user", "why?"),
            message("a1", "assistant", "Because it is so."),
            message("m2", "user", "and then?"),
            message("a2", "assistant", "First."),
        ];
        assert_eq!(texts(&shown.resume(Some(Uuid::from_u128(2)), &now)), "it is so..[and then?]First.");
        let again = vec![TurnEvent::Text("First. Second.".to_owned())];
        assert_eq!(hear(&mut shown, again), " Second.");
    }

    #[test]
    fn another_context_is_shown_from_its_start() {
        let mut shown = in_a_turn();
        let now = [message("n1", "user", "hello"), message("n2", "assistant", "Hi.")];
        assert_eq!(texts(&shown.resume(None, &now)), ".[hello]Hi..");
    }
}
