//! A conversation that is open on the screen: a live one, in which one can write, or a saved one.

use std::collections::HashSet;

use chorus_proto::message::{Message, Role};
use chorus_proto::methods::conversations::Attached;
use chorus_proto::methods::send::TurnEvent;
use uuid::Uuid;

use crate::entries::{self, Entry};
use crate::fleet::Target;
use crate::line_editor::LineEditor;
use crate::requests::Failure;

/// The parts of an open conversation that are shown.
#[derive(Debug)]
pub(crate) enum Source {
    Live(Target),
    /// A saved conversation: the agent that has it, its id, and the text that its title consists of.
    Saved {
        agent: String,
        session: String,
        title: String,
    },
}

/// An open conversation.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) source: Source,
    /// The number of its attachment, which tells late pieces of another one.
    pub(crate) number: u64,
    pub(crate) editor: LineEditor,
    /// Entries of messages that the daemon has recorded.
    record: Vec<Entry>,
    recorded: HashSet<String>,
    /// Entries of what was said since.
    live: Vec<Entry>,
    /// Index in `live` at which the running turn begins.
    turn_start: usize,
    pub(crate) turn: Option<Uuid>,
    /// The message of the running turn.
    turn_message: Option<String>,
    /// Messages before the first one that is shown.
    pub(crate) earlier: u64,
    pub(crate) is_loaded: bool,
    pub(crate) is_attached: bool,
    pub(crate) is_thinking: bool,
    pub(crate) others: Vec<Attached>,
    /// The text that was sent last, until its turn starts.
    pub(crate) sent: Option<String>,
    /// The last failure or event, in words.
    pub(crate) notice: Option<(String, bool)>,
    /// Lines between the end and the last line that is shown; 0 follows what is said.
    pub(crate) scroll: usize,
    /// Lines in all at the last frame.
    pub(crate) total_lines: usize,
}

impl Conversation {
    pub(crate) fn new(source: Source, number: u64) -> Self {
        Self {
            source,
            number,
            editor: LineEditor::default(),
            record: Vec::new(),
            recorded: HashSet::new(),
            live: Vec::new(),
            turn_start: 0,
            turn: None,
            turn_message: None,
            earlier: 0,
            is_loaded: false,
            is_attached: false,
            is_thinking: false,
            others: Vec::new(),
            sent: None,
            notice: None,
            scroll: 0,
            total_lines: 0,
        }
    }

    pub(crate) fn target(&self) -> Option<&Target> {
        match &self.source {
            Source::Live(target) => Some(target),
            Source::Saved { .. } => None,
        }
    }

    pub(crate) fn agent(&self) -> &str {
        match &self.source {
            Source::Live(target) => &target.agent,
            Source::Saved { agent, .. } => agent,
        }
    }

    pub(crate) fn entries(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.record.iter_mut().chain(&mut self.live)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.record.is_empty() && self.live.is_empty()
    }

    /// Takes the messages that the daemon has recorded. Those of the running turn are left out if its pieces are shown.
    pub(crate) fn set_record(&mut self, mut messages: Vec<Message>, total: u64) {
        self.earlier = total.saturating_sub(messages.len() as u64);
        self.is_loaded = true;
        let is_asked = |message: &Message| match &self.turn_message {
            Some(id) => message.id == *id,
            None => message.role == Role::User,
        };
        if self.turn.is_none() {
            self.live.clear();
        } else if let Some(at) = messages.iter().rposition(is_asked) {
            messages.truncate(at + 1);
            self.live.drain(..self.turn_start.min(self.live.len()));
        }
        self.turn_start = 0;
        self.record = entries::of_messages(&messages, self.agent());
        self.recorded = messages.into_iter().map(|message| message.id).collect();
        let recorded = &self.recorded;
        self.live.retain(|entry| entry.message.as_ref().is_none_or(|id| !recorded.contains(id)));
    }

    /// Handles a piece of the conversation. Returns true if the record has to be requested.
    pub(crate) fn on_piece(&mut self, event: &TurnEvent) -> bool {
        self.is_thinking = matches!(event, TurnEvent::Thinking(_));
        match event {
            TurnEvent::Attached { turn_id, others } => {
                self.is_attached = true;
                self.others.clone_from(others);
                self.turn = *turn_id;
                self.turn_message = None;
                self.live.clear();
                self.turn_start = 0;
                return true;
            }
            TurnEvent::Started { turn_id } => {
                self.turn = Some(*turn_id);
                self.sent = None;
                self.turn_start = self.live.len();
            }
            TurnEvent::Message { id, role, .. } => {
                if self.recorded.contains(id) {
                    return false;
                }
                if *role == Role::User && self.turn.is_none() {
                    self.turn_message = Some(id.clone());
                }
            }
            TurnEvent::Queued { before, .. } => {
                let (many, plural) = (*before, if *before == 1 { "" } else { "s" });
                self.notice = Some((format!("waiting for {many} earlier message{plural}"), false));
            }
            TurnEvent::Ended { reason, .. } => {
                self.turn = None;
                self.turn_message = None;
                if let Some(reason) = reason {
                    self.notice = Some((format!("the turn ended without a reply: {reason}"), true));
                }
                return true;
            }
            _ => {}
        }
        let agent = self.agent().to_owned();
        entries::push_piece(&mut self.live, event, &agent);
        false
    }

    /// Notes that the message could not be sent, or its turn failed.
    pub(crate) fn on_failure(&mut self, failure: &Failure) {
        let hint = failure.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        self.notice = Some((format!("{}{hint}", failure.message), true));
        // Its turn has not started, so it can be sent again.
        if let Some(text) = self.sent.take()
            && self.editor.text().is_empty()
        {
            self.editor.set(text);
        }
    }

    /// Takes the text that was typed; `None` if there is none.
    pub(crate) fn take_message(&mut self) -> Option<String> {
        if self.editor.text().trim().is_empty() {
            return None;
        }
        let text = self.editor.take();
        self.sent = Some(text.clone());
        self.notice = None;
        self.scroll = 0;
        Some(text)
    }
}
