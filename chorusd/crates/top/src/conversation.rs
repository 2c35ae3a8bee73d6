//! A conversation that is open on the screen: a live one, in which one can write, or a saved one.

use std::collections::HashSet;

use chorus_proto::message::{Message, Role};
use chorus_proto::methods::conversations::Attached;
use chorus_proto::methods::send::TurnEvent;
use crossterm::event::KeyEvent;
use uuid::Uuid;

use crate::entries::{self, Entry};
use crate::fleet::Target;
use crate::line_editor::{LineEditor, TOO_LONG};
use crate::requests::{MAX_MESSAGES, Reach, Request};

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

/// The subject of a notice, which says when it is not true any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeKind {
    /// The conversation cannot be followed.
    Attach,
    /// Its messages cannot be read.
    Load,
    /// A message was not sent.
    Send,
    /// A turn ended without a reply.
    Turn,
}

/// The last failure, in words.
#[derive(Debug)]
pub(crate) struct ConversationNotice {
    pub(crate) kind: NoticeKind,
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// An open conversation.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) source: Source,
    /// The id of its agent, which stays when that is renamed.
    pub(crate) agent_id: Option<Uuid>,
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
    pub(crate) notice: Option<ConversationNotice>,
    /// The messages that are requested.
    pub(crate) reach: Reach,
    /// The number of a message that was found, which is not placed yet.
    found: Option<u64>,
    /// The id of that message once it is known, until it is in view.
    pub(crate) focus: Option<String>,
    /// The id of the message that is marked.
    pub(crate) marked: Option<String>,
    /// Messages further above are requested.
    pub(crate) is_reaching: bool,
    /// Lines between the end and the last line that is shown; 0 follows what is said.
    pub(crate) scroll: usize,
    /// The place of the last line at the last frame.
    pub(crate) anchor: Anchor,
    /// Lines in all, and on the screen, at the last frame.
    pub(crate) total_lines: usize,
    pub(crate) height: usize,
}

/// A line of a conversation, which stays the same one when others are added above it or lines are wrapped elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Anchor {
    /// The scroll of the frame in which it was the last line.
    pub(crate) scroll: usize,
    /// The id of the message at or before it.
    pub(crate) message: Option<String>,
    /// Entries between the first one of that message and the one with the line.
    pub(crate) entries: usize,
    /// The line in its entry.
    pub(crate) line: usize,
}

impl Conversation {
    pub(crate) fn new(source: Source, number: u64) -> Self {
        Self {
            source,
            agent_id: None,
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
            notice: None,
            reach: Reach::START,
            found: None,
            focus: None,
            marked: None,
            is_reaching: false,
            scroll: 0,
            anchor: Anchor::default(),
            total_lines: 0,
            height: 0,
        }
    }

    /// Shows the message with this number first.
    pub(crate) fn with_message(self, number: Option<u64>) -> Self {
        Self { reach: number.map_or(Reach::START, Reach::Message), found: number, ..self }
    }

    /// Returns the request for its messages.
    pub(crate) fn record_request(&self) -> Request {
        let reach = self.reach;
        match &self.source {
            Source::Live(target) => Request::Messages(target.clone(), reach),
            Source::Saved { agent, session, .. } => {
                Request::Session { agent: agent.clone(), session: session.clone(), reach }
            }
        }
    }

    /// Returns the request for messages further above, if the first line is shown and more can be.
    pub(crate) fn reach_further(&mut self) -> Option<Request> {
        let is_at_top = self.is_loaded && self.scroll + self.height >= self.total_lines;
        let shown = self.recorded.len();
        if !is_at_top || self.earlier == 0 || self.is_reaching || shown as u64 >= MAX_MESSAGES {
            return None;
        }
        self.reach = Reach::further(shown);
        self.is_reaching = true;
        Some(self.record_request())
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

    /// Returns the number of messages that are shown.
    pub(crate) fn recorded(&self) -> usize {
        self.recorded.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.record.is_empty() && self.live.is_empty()
    }

    /// Takes the messages that the daemon has recorded. Those of the running turn are left out if its pieces are shown.
    pub(crate) fn set_record(&mut self, mut messages: Vec<Message>, total: u64) {
        self.earlier = total.saturating_sub(messages.len() as u64);
        self.is_loaded = true;
        self.is_reaching = false;
        self.clear_notice(&[NoticeKind::Load]);
        if let Some(number) = self.found.take() {
            let at = number.checked_sub(1 + self.earlier).and_then(|at| usize::try_from(at).ok());
            self.focus = at.and_then(|at| Some(messages.get(at)?.id.clone()));
            self.marked.clone_from(&self.focus);
            self.reach = Reach::Last(messages.len() as u64);
            if self.focus.is_none() {
                self.notify(NoticeKind::Load, format!("message {number} is not among those that are shown"), true);
            }
        }
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
                self.clear_notice(&[NoticeKind::Attach, NoticeKind::Load]);
                self.others.clone_from(others);
                self.turn = *turn_id;
                self.turn_message = None;
                self.live.clear();
                self.turn_start = 0;
                return true;
            }
            TurnEvent::Started { turn_id } => {
                self.turn = Some(*turn_id);
                self.clear_notice(&[NoticeKind::Send, NoticeKind::Turn]);
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
            TurnEvent::Ended { reason, .. } => {
                self.turn = None;
                self.turn_message = None;
                if let Some(reason) = reason {
                    self.notify(NoticeKind::Turn, format!("the turn ended without a reply: {reason}"), true);
                }
                return true;
            }
            _ => {}
        }
        let agent = self.agent().to_owned();
        entries::push_piece(&mut self.live, event, &agent);
        false
    }

    /// Shows what happened, until it is not true any more.
    pub(crate) fn notify(&mut self, kind: NoticeKind, text: impl Into<String>, is_error: bool) {
        self.notice = Some(ConversationNotice { kind, text: text.into(), is_error });
    }

    fn clear_notice(&mut self, kinds: &[NoticeKind]) {
        self.notice.take_if(|notice| kinds.contains(&notice.kind));
    }

    /// Handles a key of the line to write in.
    pub(crate) fn on_edit_key(&mut self, key: KeyEvent) {
        let before = self.editor.text().len();
        self.editor.on_key(key);
        if self.editor.text().len() != before {
            self.clear_notice(&[NoticeKind::Send]);
        }
    }

    /// Inserts a pasted text, unless it is too long.
    pub(crate) fn on_paste(&mut self, text: &str) {
        self.clear_notice(&[NoticeKind::Send]);
        if !self.editor.paste(text) {
            self.notify(NoticeKind::Send, TOO_LONG, true);
        }
    }

    /// Takes the text that was typed; `None` if it is empty.
    pub(crate) fn take_message(&mut self) -> Option<String> {
        if self.editor.text().trim().is_empty() {
            return None;
        }
        self.notice = None;
        self.scroll = 0;
        Some(self.editor.take())
    }
}
