//! The state of the screen. What happens changes it and has effects; nothing else does.

mod keys;
mod lists;

use chorus_proto::event::Event;
use chorus_proto::methods::approvals::Approval;
use chorus_proto::methods::daemon::StatusResult;
use chorus_proto::methods::send::TurnEvent;
use chorus_proto::methods::tasks::{Task, TaskStatus};
use chorus_proto::methods::{capture, cluster};
use chorus_proto::pluralize::pluralize;
use chorus_proto::{ErrorKind, EventType};
use crossterm::event::KeyEvent;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::connection::Incoming;
use crate::conversation::{Conversation, Source};
use crate::fleet::{Fleet, RowKey, Target};
use crate::panels::{Panel, Selection};
use crate::refresh::Refresh;
use crate::requests::{Answer, Failure, Request};

/// How long a message about what was done stays.
const NOTICE_TIME: SignedDuration = SignedDuration::from_secs(8);

/// Something that happens: input, an answer, a notification, the passing of time.
#[derive(Debug)]
pub(crate) enum Input {
    Key(KeyEvent),
    Paste(String),
    Resized,
    Incoming(Incoming),
    Tick,
}

/// A task of the shell.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    Request(Request),
    Attach(Target, u64),
    Detach,
    Leave,
    Suspend,
    /// Draw everything again.
    Clear,
}

/// The connection to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Connecting,
    Connected,
    /// Since when it is gone.
    Lost(Timestamp),
}

/// A message about what was done, or what failed.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    until: Timestamp,
}

/// The state of the screen.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) now: Timestamp,
    pub(crate) zone: TimeZone,
    pub(crate) has_color: bool,
    /// The name under which others see this screen.
    pub(crate) client: String,
    pub(crate) link: Link,
    /// The machine of the daemon, if it is another one.
    pub(crate) host: Option<String>,
    pub(crate) fleet: Fleet,
    /// The daemon, without agents.
    pub(crate) status: Option<Box<StatusResult>>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) approvals: Vec<Approval>,
    pub(crate) capture: Option<Box<capture::StatusResult>>,
    pub(crate) cluster: Option<cluster::StatusResult>,
    pub(crate) panels: Vec<Panel>,
    /// The agent into which captured conversations are restored.
    own_agent: Option<String>,
    pub(crate) selected: Option<RowKey>,
    pub(crate) selection: Selection,
    /// Rows of the list at the last frame.
    pub(crate) page: usize,
    pub(crate) notice: Option<Notice>,
    refresh: Refresh,
    attachments: u64,
    effects: Vec<Effect>,
}

impl State {
    pub(crate) fn new(now: Timestamp, zone: TimeZone, has_color: bool, client: String, agent: Option<&str>) -> Self {
        Self {
            now,
            zone,
            has_color,
            client,
            link: Link::Connecting,
            host: None,
            fleet: Fleet::default(),
            status: None,
            tasks: Vec::new(),
            approvals: Vec::new(),
            capture: None,
            cluster: None,
            panels: Vec::new(),
            own_agent: agent.map(str::to_owned),
            selected: agent.map(|agent| RowKey::Conversation(Target::main(agent))),
            selection: Selection::default(),
            page: 1,
            notice: None,
            refresh: Refresh::default(),
            attachments: 0,
            effects: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(crate) fn own_agent_for_tests(&mut self, name: &str) {
        self.own_agent = Some(name.to_owned());
    }

    /// Handles what happened at `now`. Returns what has to be done.
    pub(crate) fn handle(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
        self.now = now;
        match input {
            Input::Key(key) => self.on_key(key),
            Input::Paste(text) => self.on_paste(&text),
            Input::Resized => {}
            Input::Incoming(incoming) => self.on_incoming(incoming),
            Input::Tick => {
                self.notice.take_if(|notice| notice.until <= now);
            }
        }
        if self.link == Link::Connected {
            self.effects.extend(self.refresh.due(now).into_iter().map(Effect::Request));
        }
        std::mem::take(&mut self.effects)
    }

    /// Returns how long the picture stays the same if nothing happens.
    pub(crate) fn wait(&self) -> SignedDuration {
        let refresh = self.refresh.wait().filter(|_| self.link == Link::Connected);
        let is_busy = self.fleet.totals().turns > 0
            || !self.approvals.is_empty()
            || self.link != Link::Connected
            || self.shows_seconds();
        let tick = SignedDuration::from_secs(if is_busy { 1 } else { 5 });
        refresh.map_or(tick, |refresh| refresh.min(tick))
    }

    /// Returns true if a visible conversation is saved within a minute.
    fn shows_seconds(&self) -> bool {
        let visible = self.selection.top..self.selection.top + self.page;
        visible.filter_map(|at| self.fleet.row(at)?.context()?.idle_deadline_at).any(|at| {
            let left = at.duration_since(self.now);
            left < SignedDuration::from_secs(65) && !left.is_negative()
        })
    }

    fn request(&mut self, request: Request) {
        self.effects.push(Effect::Request(request));
    }

    fn report(&mut self, text: impl Into<String>, is_error: bool) {
        self.notice = Some(Notice { text: text.into(), is_error, until: self.now + NOTICE_TIME });
    }

    /// Returns the conversation that is open and shown, or lies below another panel.
    pub(crate) fn open(&mut self) -> Option<&mut Conversation> {
        self.panels.iter_mut().rev().find_map(|panel| match panel {
            Panel::Conversation(open) => Some(&mut **open),
            _ => None,
        })
    }

    /// Opens a live conversation.
    fn open_live(&mut self, target: Target) {
        self.attachments += 1;
        self.effects.push(Effect::Attach(target.clone(), self.attachments));
        let conversation = Conversation::new(Source::Live(target), self.attachments);
        self.panels.push(Panel::Conversation(Box::new(conversation)));
    }

    /// Opens a saved conversation, to read it.
    fn open_saved(&mut self, agent: String, session: String, title: String) {
        self.attachments += 1;
        self.request(Request::Session { agent: agent.clone(), session: session.clone() });
        let conversation = Conversation::new(Source::Saved { agent, session, title }, self.attachments);
        self.panels.push(Panel::Conversation(Box::new(conversation)));
    }

    /// Closes the panel that is shown.
    fn close_panel(&mut self) {
        let Some(Panel::Conversation(closed)) = self.panels.pop() else { return };
        if closed.target().is_none() {
            return;
        }
        // One that lies below is followed again.
        self.effects.push(Effect::Detach);
        let below = self.open().and_then(|open| Some((open.target()?.clone(), open.number)));
        if let Some((target, number)) = below {
            self.effects.push(Effect::Attach(target, number));
        }
    }

    fn on_incoming(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Connected => {
                self.link = Link::Connected;
                self.refresh.all();
            }
            Incoming::Disconnected => {
                if !matches!(self.link, Link::Lost(_)) {
                    self.link = Link::Lost(self.now);
                }
            }
            Incoming::Lagged => self.refresh.all(),
            Incoming::Event(event) => self.on_event(&event),
            Incoming::Turn(number, event) => self.on_turn(number, &event),
            Incoming::Detached(number, failure) => {
                if let Some(open) = self.open().filter(|open| open.number == number) {
                    open.is_attached = false;
                    if let Some(failure) = failure {
                        open.on_failure(&failure);
                    }
                }
            }
            Incoming::Answer(request, answer) => {
                self.refresh.answered(&request);
                match answer {
                    Ok(answer) => self.on_answer(request, answer),
                    Err(failure) => self.on_failure(request, failure),
                }
            }
        }
    }

    fn on_event(&mut self, event: &Event) {
        self.refresh.on_event(event);
        let Some(agent) = event.agent.as_deref() else { return };
        let conversation = event.conversation.as_deref();
        match event.kind {
            EventType::ToolStarted => {
                let name = event.data.get("name").and_then(Value::as_str).map(str::to_owned);
                self.fleet.set_tool(agent, conversation, name);
            }
            EventType::ToolFinished => self.fleet.set_tool(agent, conversation, None),
            EventType::AgentDestroyed => {
                self.fleet.remove(agent);
                self.place_selection();
            }
            // The conversation that is open is another one now.
            EventType::ContextCleared | EventType::ContextRestored | EventType::ContextRewound => {
                let target = Target { agent: agent.to_owned(), conversation: conversation.map(str::to_owned) };
                if self.open().is_some_and(|open| open.target() == Some(&target)) {
                    self.request(Request::Messages(target));
                }
            }
            _ => {}
        }
    }

    fn on_turn(&mut self, number: u64, event: &TurnEvent) {
        let Some(open) = self.open().filter(|open| open.number == number) else { return };
        let needs_record = open.on_piece(event);
        if let Some(target) = open.target().cloned().filter(|_| needs_record) {
            self.request(Request::Messages(target));
        }
    }

    fn on_answer(&mut self, request: Request, answer: Answer) {
        match (request, answer) {
            (Request::Status, Answer::Status(mut status)) => {
                self.fleet.replace(std::mem::take(&mut status.agents), self.now);
                self.status = Some(status);
                self.place_selection();
                // The conversations of each program.
                let importers: Vec<String> = self.fleet.importers().map(|(name, _)| name.to_owned()).collect();
                importers.iter().for_each(|name| self.refresh.captured(name));
            }
            (Request::Daemon, Answer::Status(status)) => {
                let open = status.totals.map_or(0, |totals| totals.approvals);
                // What was missed, or expired without an event.
                if (open == 0) != self.approvals.is_empty() {
                    self.refresh.all_approvals();
                }
                self.status = Some(status);
            }
            (Request::Agent(_), Answer::Status(status)) => {
                for agent in status.agents {
                    self.fleet.update(agent, self.now);
                }
                self.place_selection();
            }
            (_, Answer::Approvals(approvals)) => self.approvals = approvals,
            (_, Answer::Tasks(tasks)) => self.tasks = tasks,
            (_, Answer::Capture(capture)) => self.on_capture(capture),
            (_, Answer::Cluster(cluster)) => self.cluster = Some(cluster),
            (Request::Captured(agent), Answer::Sessions(sessions, total)) => {
                self.fleet.set_captured(&agent, sessions, total);
                self.place_selection();
            }
            (Request::Messages(target), Answer::Messages(shown)) => {
                if let Some(open) = self.open().filter(|open| open.target() == Some(&target)) {
                    let total = shown.context.as_ref().map_or(0, |context| context.messages);
                    open.set_record(shown.messages, total);
                }
            }
            (Request::Session { session, .. }, Answer::Session(shown)) => {
                let is_it = |open: &&mut Conversation| matches!(&open.source, Source::Saved { session: of, .. } if *of == session);
                if let Some(open) = self.open().filter(is_it) {
                    open.set_record(shown.messages, shown.session.header.message_count);
                }
            }
            (Request::Restore { target, .. }, Answer::Restored(restored)) => {
                let saved = restored
                    .saved_first
                    .as_ref()
                    .map(|saved| format!("; saved the previous conversation as {}", saved.header.session_id));
                let name = &restored.session.header.session_id;
                let messages = pluralize(restored.messages, "message");
                self.panels.clear();
                self.effects.push(Effect::Detach);
                self.refresh.agent(&target.agent);
                self.open_live(target);
                self.report(format!("restored {name}: {messages}{}", saved.unwrap_or_default()), false);
            }
            (_, Answer::Done(text)) => {
                self.report(text, false);
                self.refresh.all_approvals();
            }
            (request, answer) => self.on_list(request, answer),
        }
    }

    /// Takes the state of capture, and requests the conversations of programs that have new messages.
    fn on_capture(&mut self, capture: Box<capture::StatusResult>) {
        let messages = |status: &capture::StatusResult, program: &str| {
            let source = status.sources.iter().find(|source| source.source == program);
            source.map(|source| (source.messages, source.last_written_at))
        };
        let changed: Vec<String> = self
            .fleet
            .importers()
            .filter(|(_, program)| {
                self.capture.as_ref().and_then(|before| messages(before, program)) != messages(&capture, program)
            })
            .map(|(name, _)| name.to_owned())
            .collect();
        changed.iter().for_each(|name| self.refresh.captured(name));
        self.capture = Some(capture);
    }

    fn on_failure(&mut self, request: Request, failure: Failure) {
        self.refresh.failed(&request, self.now);
        let is_decision = matches!(request, Request::Decide { .. });
        match request {
            // The connection that follows events reports it.
            _ if failure.kind.is_none() && self.link != Link::Connected => {}
            Request::Cluster => self.refresh.no_cluster(),
            Request::Agent(name) if failure.kind == Some(ErrorKind::NotFound) => {
                self.fleet.remove(&name);
                self.place_selection();
            }
            // Daemons of earlier releases have no capture; others are asked again.
            Request::Capture | Request::Captured(_) | Request::Daemon | Request::Agent(_) => {}
            Request::Send(target, _) | Request::Messages(target)
                if self.open().is_some_and(|open| open.target() == Some(&target)) =>
            {
                if let Some(open) = self.open() {
                    open.on_failure(&failure);
                }
            }
            Request::Search { number, .. } => self.search_failed(number, &failure),
            _ => {
                let hint = failure.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                self.report(format!("{}{hint}", failure.message), true);
                if is_decision {
                    self.refresh.all_approvals();
                }
            }
        }
    }

    /// Keeps the selected row selected after rows have moved.
    fn place_selection(&mut self) {
        match &self.selected {
            Some(key) => self.selection.at = self.fleet.position(key).unwrap_or(self.selection.at),
            None => self.selection.at = 0,
        }
        self.selection.at = self.selection.at.min(self.fleet.len().saturating_sub(1));
        self.selected = self.fleet.row(self.selection.at).map(|row| row.key());
    }

    /// Returns the number of running tasks.
    pub(crate) fn running_tasks(&self) -> u64 {
        let listed = self.tasks.iter().filter(|task| task.status == TaskStatus::Running).count() as u64;
        self.status.as_ref().map_or(listed, |status| status.tasks.running.max(listed))
    }
}
