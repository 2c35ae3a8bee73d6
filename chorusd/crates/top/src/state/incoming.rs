//! Answers, events and pieces of the open conversation.

use chorus_proto::event::Event;
use chorus_proto::methods::capture;
use chorus_proto::methods::context::RestoreResult;
use chorus_proto::methods::send::TurnEvent;
use chorus_proto::pluralize::pluralize;
use chorus_proto::{ErrorKind, EventType};
use serde_json::Value;

use super::{Effect, Link, Reported, State};
use crate::connection::Incoming;
use crate::conversation::{Conversation, NoticeKind, Source};
use crate::fleet::Target;
use crate::panels::Panel;
use crate::requests::{Answer, Failure, Request};

impl State {
    pub(super) fn on_incoming(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Connected => {
                self.link = Link::Connected;
                self.link_failure = None;
                self.fleet.forget_tools();
                self.refresh.all();
                self.resend(self.now);
                self.request_panels_again();
            }
            Incoming::Disconnected(failure) => {
                if !matches!(self.link, Link::Lost(_)) {
                    self.link = Link::Lost(self.now);
                }
                self.link_failure = failure;
            }
            Incoming::Lagged => {
                self.fleet.forget_tools();
                self.refresh.all();
            }
            Incoming::Event(event) => self.on_event(&event),
            Incoming::Turn(number, event) => self.on_turn(number, &event),
            Incoming::Detached(number, failure) => self.on_detached(number, failure),
            Incoming::SendStage(target, key, stage) => self.on_send_stage(&target, &key, stage),
            Incoming::Answer(request, answer) => {
                let is_answer = answer.as_ref().map_or_else(|failure| failure.kind.is_some(), |_| true);
                self.refresh.answered(&request, is_answer);
                if request.is_action() && !matches!(request, Request::Send { .. }) {
                    self.unanswered_actions = self.unanswered_actions.saturating_sub(1);
                }
                match answer {
                    Ok(answer) => self.on_answer(request, answer),
                    Err(failure) => self.on_failure(request, failure),
                }
            }
        }
    }

    /// Returns the conversation with this number of an attachment.
    fn conversation(&mut self, number: u64) -> Option<&mut Conversation> {
        self.panels.iter_mut().find_map(|panel| match panel {
            Panel::Conversation(open) if open.number == number => Some(&mut **open),
            _ => None,
        })
    }

    fn on_detached(&mut self, number: u64, failure: Option<Failure>) {
        let Some(open) = self.conversation(number) else { return };
        open.is_attached = false;
        let Some(failure) = failure else { return };
        if matches!(failure.kind, Some(ErrorKind::AgentNotFound | ErrorKind::ConversationNotFound)) {
            let what = if failure.kind == Some(ErrorKind::AgentNotFound) { "agent" } else { "conversation" };
            open.notify(NoticeKind::Attach, format!("the {what} no longer exists"), true);
            self.refresh.everything_of_agents();
        } else {
            open.notify(NoticeKind::Attach, failure.text(), true);
        }
    }

    fn on_event(&mut self, event: &Event) {
        self.refresh.on_event(event);
        let Some(agent) = event.agent.as_deref() else { return };
        let conversation = event.conversation.as_deref();
        let text = |field: &str| event.data.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        match event.kind {
            EventType::TurnStarted => self.fleet.start_turn(agent, conversation),
            EventType::ToolStarted => self.fleet.start_tool(agent, conversation, text("id"), text("name")),
            EventType::ToolFinished => self.fleet.finish_tool(agent, conversation, &text("id")),
            EventType::AgentDestroyed => {
                self.fleet.remove(agent);
                self.place_selection();
            }
            // The conversation that is open is another one now.
            EventType::ContextCleared | EventType::ContextRestored | EventType::ContextRewound => {
                let target = Target { agent: agent.to_owned(), conversation: conversation.map(str::to_owned) };
                self.request_record(&target);
            }
            _ => {}
        }
    }

    /// Requests the messages of a conversation if it is open.
    pub(super) fn request_record(&mut self, target: &Target) {
        let request = self.panels.iter().find_map(|panel| match panel {
            Panel::Conversation(open) if open.target() == Some(target) => Some(open.record_request()),
            _ => None,
        });
        if let Some(request) = request {
            self.request(request);
        }
    }

    fn is_open(&self, target: &Target) -> bool {
        self.panels.iter().any(|panel| matches!(panel, Panel::Conversation(open) if open.target() == Some(target)))
    }

    fn on_turn(&mut self, number: u64, event: &TurnEvent) {
        let Some(open) = self.conversation(number) else { return };
        let request = open.on_piece(event).then(|| open.record_request());
        if let Some(request) = request {
            self.request(request);
        }
    }

    fn on_answer(&mut self, request: Request, answer: Answer) {
        match (request, answer) {
            (Request::Status, Answer::Status(mut status)) => {
                self.fleet.replace(std::mem::take(&mut status.agents), self.now);
                self.status = Some(status);
                self.place_selection();
                self.follow_new_names();
                // The conversations of each program.
                let importers: Vec<String> = self.fleet.importers().map(|(name, _)| name.to_owned()).collect();
                importers.iter().for_each(|name| self.refresh.captured(name));
            }
            (Request::Daemon, Answer::Status(status)) => {
                let open = status.totals.map_or(0, |totals| totals.approvals);
                // What was missed, or expired without an event.
                if open != self.approvals.len() as u64 {
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
            (_, Answer::Approvals(approvals)) => {
                self.approvals = approvals;
                self.place_approvals();
            }
            (_, Answer::Tasks(tasks)) => (self.tasks, self.has_tasks) = (tasks, true),
            (_, Answer::Capture(capture)) => self.on_capture(capture),
            (_, Answer::Cluster(cluster)) => self.cluster = Reported::Value(cluster),
            (Request::Send { target, key, .. }, Answer::Sent) => self.outboxes.delivered(&target, &key),
            (Request::Decide { id, .. }, Answer::Done(text)) => self.decided(&id, text),
            (Request::Captured(agent), Answer::Sessions(sessions, total)) => {
                self.fleet.set_captured(&agent, sessions, total);
                self.place_selection();
            }
            (Request::Messages(target, _), Answer::Messages(shown)) => {
                let total = shown.context.as_ref().map_or(0, |context| context.messages);
                for panel in &mut self.panels {
                    if let Panel::Conversation(open) = panel
                        && open.target() == Some(&target)
                    {
                        return open.set_record(shown.messages, total);
                    }
                }
            }
            (Request::Session { session, .. }, Answer::Session(shown)) => {
                if let Some(open) = self.saved_conversation(&session) {
                    open.set_record(shown.messages, shown.session.header.message_count);
                }
            }
            (Request::Restore { target, .. }, Answer::Restored(restored)) => self.on_restored(target, &restored),
            (_, Answer::Done(text)) => {
                self.report(text, false);
                self.refresh.all_approvals();
            }
            (request, answer) => self.on_list(request, answer),
        }
    }

    fn saved_conversation(&mut self, id: &str) -> Option<&mut Conversation> {
        self.panels.iter_mut().rev().find_map(|panel| match panel {
            Panel::Conversation(open) if matches!(&open.source, Source::Saved { session, .. } if session == id) => {
                Some(&mut **open)
            }
            _ => None,
        })
    }

    /// Opens the conversation that was restored, unless somebody has opened or closed a panel since.
    fn on_restored(&mut self, target: Target, restored: &RestoreResult) {
        let saved = restored
            .saved_first
            .as_ref()
            .map(|saved| format!("; saved the previous conversation as {}", saved.header.session_id))
            .unwrap_or_default();
        let name = &restored.session.header.session_id;
        let messages = pluralize(restored.messages, "message");
        self.refresh.agent(&target.agent);
        let is_same_panel = self.restored_from.take() == Some(self.panel_changes);
        let into = if is_same_panel { String::new() } else { format!(" into {}", target.agent) };
        if is_same_panel {
            while self.pop_panel().is_some() {}
            self.effects.push(Effect::Detach);
            self.open_live(target);
        }
        self.report(format!("restored {name}{into}: {messages}{saved}"), false);
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
                self.capture.get().and_then(|before| messages(before, program)) != messages(&capture, program)
            })
            .map(|(name, _)| name.to_owned())
            .collect();
        changed.iter().for_each(|name| self.refresh.captured(name));
        self.capture = Reported::Value(capture);
    }

    fn on_failure(&mut self, request: Request, failure: Failure) {
        self.refresh.failed(&request, self.now);
        // The connection that follows events reports that the daemon is away.
        let is_unreachable = failure.kind.is_none() && self.link != Link::Connected;
        match request {
            Request::Send { target, key, .. } => self.send_failed(&target, &key, &failure),
            Request::Decide { id, .. } => self.decision_failed(&id, &failure),
            Request::Restore { target, .. } if failure.kind.is_none() => {
                self.restored_from = None;
                let text = format!("{} may not have its restored conversation: {}", target.agent, failure.text());
                self.report(text, true);
            }
            Request::Search { number, .. } => self.search_failed(number, &failure, is_unreachable),
            Request::History(_) | Request::Tree(_) => self.list_failed(&request, &failure),
            Request::Session { session, .. } => {
                if let Some(open) = self.saved_conversation(&session) {
                    open.notify(NoticeKind::Load, failure.text(), true);
                }
            }
            _ if is_unreachable && !request.is_action() => {}
            Request::Cluster if failure.kind == Some(ErrorKind::Unsupported) => {
                self.refresh.no_cluster();
                self.cluster = Reported::Absent;
            }
            Request::Cluster => self.cluster = Reported::Failed,
            Request::Agent(name) if failure.kind == Some(ErrorKind::AgentNotFound) => {
                self.fleet.remove(&name);
                self.place_selection();
            }
            // Daemons of earlier releases have no capture; others are asked again.
            Request::Capture if failure.kind == Some(ErrorKind::Unsupported) => self.capture = Reported::Absent,
            Request::Capture => self.capture = Reported::Failed,
            Request::Captured(_) | Request::Daemon | Request::Agent(_) => {}
            // Reported as such if it lasts.
            Request::Status | Request::Approvals | Request::Tasks if failure.kind.is_none() => {}
            Request::Messages(target, _) if self.is_open(&target) => {
                for panel in &mut self.panels {
                    if let Panel::Conversation(open) = panel
                        && open.target() == Some(&target)
                    {
                        open.notify(NoticeKind::Load, failure.text(), true);
                    }
                }
            }
            Request::Restore { .. } => {
                self.restored_from = None;
                self.report(failure.text(), true);
            }
            _ => self.report(failure.text(), true),
        }
    }
}
