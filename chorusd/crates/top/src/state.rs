//! The state of the screen. What happens changes it and has effects; nothing else does.

mod approvals;
mod incoming;
mod keys;
mod lists;
mod sends;

pub(crate) use approvals::{ApprovalRow, ApprovalsPanel};
use chorus_proto::methods::approvals::Approval;
use chorus_proto::methods::daemon::StatusResult;
use chorus_proto::methods::tasks::{Task, TaskStatus};
use chorus_proto::methods::{capture, cluster};
use crossterm::event::KeyEvent;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::connection::Incoming;
use crate::conversation::{Conversation, Source};
use crate::fleet::{Fleet, RowKey, Target};
use crate::outbox::Outboxes;
use crate::panels::{Panel, Selection};
use crate::refresh::Refresh;
use crate::requests::{Failure, MAX_TASKS, Request};

/// How long a message about what was done stays.
const NOTICE_TIME: SignedDuration = SignedDuration::from_secs(8);
/// The time after which a message whose connection was lost is sent again, if the daemon is connected still.
const RESEND_TIME: SignedDuration = SignedDuration::from_secs(1);
/// The time after which a daemon that does not answer is reported.
const SILENCE_TIME: SignedDuration = SignedDuration::from_secs(4);

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

/// A part of the daemon's state that it may not have, or not report.
#[derive(Debug)]
pub(crate) enum Reported<T> {
    /// Nothing was answered yet, or the daemon has no such part.
    Absent,
    /// The request failed.
    Failed,
    Value(T),
}

impl<T> Reported<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Failed => None,
        }
    }
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
    /// The terminal shows more than ASCII.
    pub(crate) is_utf8: bool,
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
    pub(crate) capture: Reported<Box<capture::StatusResult>>,
    pub(crate) cluster: Reported<cluster::StatusResult>,
    pub(crate) panels: Vec<Panel>,
    /// Number of panels that were opened and closed, by which a late answer sees that another one is shown.
    panel_changes: u64,
    /// The panel above which a restore was confirmed, while it runs: [`Self::panel_changes`] then.
    restored_from: Option<u64>,
    pub(crate) outboxes: Outboxes,
    /// Number of decisions and the like that the daemon has not answered.
    unanswered_actions: usize,
    /// Number of the newest query of any search.
    queries: u64,
    /// The day whose costs are shown.
    day: Date,
    /// Why the daemon cannot be reached, if it is not only away.
    pub(crate) link_failure: Option<Failure>,
    /// The agent into which captured conversations are restored.
    own_agent: Option<String>,
    pub(crate) selected: Option<RowKey>,
    /// The id of its agent.
    selected_id: Option<uuid::Uuid>,
    pub(crate) selection: Selection,
    /// Rows of the list at the last frame.
    pub(crate) page: usize,
    pub(crate) notice: Option<Notice>,
    /// Ctrl-C was pressed last, and has not left the screen.
    is_leaving_armed: bool,
    /// Another row is selected because the agent of the one before is gone.
    is_selection_lost: bool,
    /// A row was selected.
    has_placed: bool,
    /// The list of tasks has arrived.
    has_tasks: bool,
    refresh: Refresh,
    attachments: u64,
    effects: Vec<Effect>,
}

impl State {
    pub(crate) fn new(now: Timestamp, zone: TimeZone, has_color: bool, client: String, agent: Option<&str>) -> Self {
        let day = now.to_zoned(zone.clone()).date();
        Self {
            now,
            zone,
            day,
            has_color,
            is_utf8: true,
            client,
            link: Link::Connecting,
            host: None,
            fleet: Fleet::default(),
            status: None,
            tasks: Vec::new(),
            approvals: Vec::new(),
            capture: Reported::Absent,
            cluster: Reported::Absent,
            panels: Vec::new(),
            panel_changes: 0,
            restored_from: None,
            outboxes: Outboxes::default(),
            unanswered_actions: 0,
            queries: 0,
            link_failure: None,
            own_agent: agent.map(str::to_owned),
            selected: agent.map(|agent| RowKey::Conversation(Target::main(agent))),
            selected_id: None,
            selection: Selection::default(),
            page: 1,
            notice: None,
            is_leaving_armed: false,
            is_selection_lost: false,
            has_placed: false,
            has_tasks: false,
            refresh: Refresh::default(),
            attachments: 0,
            effects: Vec::new(),
        }
    }

    /// Draws other characters than ASCII only if `is_utf8`.
    pub(crate) fn with_utf8(self, is_utf8: bool) -> Self {
        Self { is_utf8, ..self }
    }

    /// Uses keys of messages that start with `prefix`, which no other screen may use.
    pub(crate) fn with_key_prefix(self, prefix: String) -> Self {
        Self { outboxes: Outboxes::new(prefix), ..self }
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
                if self.link == Link::Connected {
                    self.search_again();
                }
            }
        }
        let day = now.to_zoned(self.zone.clone()).date();
        if self.day != day {
            self.day = day;
            self.refresh.everything_of_agents();
        }
        if self.link == Link::Connected {
            self.resend(now - RESEND_TIME);
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
            || self.outboxes.has_unconfirmed()
            || self.panels.iter().any(|panel| matches!(panel, Panel::Search(search) if search.is_partial()))
            || self.refresh.unanswered_since().is_some()
            || self.shows_seconds();
        let tick = SignedDuration::from_secs(if is_busy { 1 } else { 4 });
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
        self.unanswered_actions += usize::from(request.is_action() && !matches!(request, Request::Send { .. }));
        self.effects.push(Effect::Request(request));
    }

    /// Requests what somebody wants done, which is refused without a connection. Returns false then.
    fn request_action(&mut self, request: Request) -> bool {
        let is_connected = self.link == Link::Connected;
        if is_connected {
            self.request(request);
        } else {
            self.report("not done: no connection to chorusd", true);
        }
        is_connected
    }

    /// Returns since when the daemon has not answered, if that is long ago and it is connected.
    pub(crate) fn silent_since(&self) -> Option<Timestamp> {
        let since = self.refresh.unanswered_since().filter(|_| self.link == Link::Connected)?;
        (self.now.duration_since(since) >= SILENCE_TIME).then_some(since)
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

    fn push_panel(&mut self, panel: Panel) {
        self.panel_changes += 1;
        self.panels.push(panel);
    }

    fn pop_panel(&mut self) -> Option<Panel> {
        self.panel_changes += 1;
        let closed = self.panels.pop();
        if let Some(Panel::Conversation(open)) = &closed {
            self.store_draft(open);
        }
        closed
    }

    /// Opens a live conversation, at the end.
    fn open_live(&mut self, target: Target) {
        self.open_live_at(target, None);
    }

    /// Opens a live conversation, at the message with this number if there is one.
    fn open_live_at(&mut self, target: Target, message: Option<u64>) {
        self.attachments += 1;
        self.effects.push(Effect::Attach(target.clone(), self.attachments));
        let mut conversation = Conversation::new(Source::Live(target.clone()), self.attachments).with_message(message);
        conversation.agent_id = self.fleet.id(&target.agent);
        // One that lies below has the line.
        if !self.panels.iter().any(|panel| matches!(panel, Panel::Conversation(open) if open.target() == Some(&target)))
        {
            conversation.editor = std::mem::take(&mut self.outboxes.of(&target).draft);
            self.outboxes.tidy();
        }
        self.push_panel(Panel::Conversation(Box::new(conversation)));
    }

    /// Opens a saved conversation, to read it.
    fn open_saved(&mut self, agent: String, session: String, title: String, message: Option<u64>) {
        self.attachments += 1;
        let source = Source::Saved { agent, session, title };
        let conversation = Conversation::new(source, self.attachments).with_message(message);
        self.request(conversation.record_request());
        self.push_panel(Panel::Conversation(Box::new(conversation)));
    }

    /// Closes the panel that is shown.
    fn close_panel(&mut self) {
        let Some(Panel::Conversation(closed)) = self.pop_panel() else { return };
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

    /// Keeps the selected row selected after rows have moved.
    fn place_selection(&mut self) {
        match self.selected.as_ref().map(|key| (self.fleet.position(key), key.agent().to_owned())) {
            Some((Some(at), _)) => self.selection.at = at,
            Some((None, agent)) if self.has_new_name() => {
                let name = self.selected.as_ref().map(|key| key.agent().to_owned()).unwrap_or_default();
                self.report(format!("{agent} is called {name} now"), false);
            }
            // It was named when the screen was opened.
            Some((None, agent)) if !self.has_placed => self.report(format!("no agent {agent:?}"), true),
            Some((None, agent)) => {
                self.is_selection_lost = true;
                self.report(format!("{agent} no longer exists"), true);
            }
            None => self.selection.at = 0,
        }
        self.has_placed = true;
        self.selection.at = self.selection.at.min(self.fleet.len().saturating_sub(1));
        self.selected = self.fleet.row(self.selection.at).map(|row| row.key());
        self.selected_id = self.selected.as_ref().and_then(|key| self.fleet.id(key.agent()));
    }

    /// Selects the row of the selected agent under its new name. Returns false if it has none.
    fn has_new_name(&mut self) -> bool {
        let name = self.selected_id.and_then(|id| self.fleet.name(id)).map(str::to_owned);
        let Some((name, key)) = name.zip(self.selected.as_mut()) else { return false };
        match key {
            RowKey::Conversation(target) => target.agent = name,
            RowKey::Captured(agent, _) => *agent = name,
        }
        let at = self.fleet.position(key);
        self.selection.at = at.unwrap_or(self.selection.at);
        at.is_some()
    }

    /// Follows open conversations whose agents have new names.
    fn follow_new_names(&mut self) {
        for panel in &mut self.panels {
            let Panel::Conversation(open) = panel else { continue };
            let Some(old) = open.target().cloned() else { continue };
            let name = open.agent_id.filter(|_| self.fleet.get(&old.agent).is_none());
            let Some(name) = name.and_then(|id| self.fleet.name(id)) else { continue };
            let new = Target { agent: name.to_owned(), conversation: old.conversation.clone() };
            self.outboxes.rename(&old, &new);
            open.source = Source::Live(new.clone());
            self.effects.push(Effect::Attach(new, open.number));
        }
    }

    /// Returns the number of running tasks.
    pub(crate) fn running_tasks(&self) -> u64 {
        let listed = self.tasks.iter().filter(|task| task.status == TaskStatus::Running).count() as u64;
        // The list has all of them, unless it is full.
        let is_complete = self.has_tasks && listed < MAX_TASKS;
        self.status.as_ref().filter(|_| !is_complete).map_or(listed, |status| status.tasks.running.max(listed))
    }
}
