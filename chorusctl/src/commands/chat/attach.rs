//! `chat --attach`: follows a conversation, whoever speaks in it. A thread with a connection of its own receives what is
//! said.

#![expect(clippy::disallowed_types, reason = "the client does without chorus_base")]

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use chorus_proto::methods::Method as _;
use chorus_proto::methods::conversations::{Attach, AttachParams};
use chorus_proto::methods::send::{Progress, TurnEvent};
use chorus_proto::{CallError, Role};
use chorus_remote::DaemonAddress;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::attach_resume::ShownConversation;
use super::attached_lines::AttachedLines;
use super::attached_output::is_stopping;
use super::notices::NoticePrinter;
use crate::app::App;
use crate::error::Error;
use crate::reconnect::{is_lost, is_temporary};
use crate::ui::terminal;

/// How long the end of a turn of this chat may take to arrive on the other connection.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The wait before a lost line is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Returns the parameters to attach to the conversation of `app`.
pub(super) fn params(app: &App) -> AttachParams {
    let client = terminal::name().unwrap_or_else(|| "chorusctl".to_owned());
    AttachParams { agent: app.agent(), conversation: app.conversation(), client: Some(client), after: None }
}

/// A conversation that is followed until this is dropped at the end of the program.
pub(super) struct AttachedConversation {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

struct Shared {
    daemon: DaemonAddress,
    params: AttachParams,
    notices: NoticePrinter,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The pieces that arrived and are not shown yet.
    events: VecDeque<TurnEvent>,
    /// Events wait in the queue, because the chat shows a turn itself.
    is_held: bool,
    /// The turn of this chat whose end has not arrived yet.
    own_turn: Option<Uuid>,
    lines: AttachedLines,
    /// Why the connection ended.
    failure: Option<CallError>,
}

impl AttachedConversation {
    /// Attaches. What is said is printed by `notices`, once it is released.
    pub(super) fn new(app: &App, agent: &str, notices: NoticePrinter) -> Result<Self, Error> {
        let state = State {
            events: VecDeque::new(),
            is_held: true,
            own_turn: None,
            lines: AttachedLines::new(agent, notices.width()),
            failure: None,
        };
        let shared = Shared {
            daemon: app.address()?,
            params: params(app),
            notices,
            state: Mutex::new(state),
            changed: Condvar::new(),
        };
        let mut attached = Self { shared: Arc::new(shared), thread: None };
        attached.ensure_following();
        Ok(attached)
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn next_event(&self) -> Result<TurnEvent, Error> {
        let mut state = self.shared.lock();
        loop {
            if let Some(event) = state.events.pop_front() {
                return Ok(event);
            }
            if let Some(failure) = state.failure.take() {
                return Err(failure.into());
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Holds back what arrives: a turn of this chat begins.
    pub(super) fn hold(&mut self) {
        self.ensure_following();
        self.shared.lock().is_held = true;
    }

    /// Shows what was held back, and from now on what arrives. What belongs to `own_turn` is left out: the chat has shown
    /// it.
    pub(super) fn release(&mut self, own_turn: Option<Uuid>) {
        self.ensure_following();
        let mut state = self.shared.lock();
        if let Some(turn) = own_turn {
            let late = Instant::now() + END_TIMEOUT;
            while !state.has_ended(turn) && state.failure.is_none() && Instant::now() < late {
                let left = late.saturating_duration_since(Instant::now());
                state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            state.remove_turn(turn);
        }
        state.is_held = false;
        self.shared.show(&mut state);
    }

    /// Starts the thread, or starts it again if the daemon went away.
    fn ensure_following(&mut self) {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let shared = self.shared.clone();
        self.thread = thread::Builder::new().name("attach".into()).spawn(move || shared.follow()).ok();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives events until the connection ends; one to another machine is made again.
    fn follow(&self) {
        let mut shown = self.daemon.host().map(|_| ShownConversation::new(self.daemon.clone(), self.params.clone()));
        let mut is_reported = false;
        let followed = loop {
            let followed = self.follow_once(&mut shown, &mut is_reported);
            match (&followed, self.daemon.host()) {
                (Err(error), Some(host))
                    if shown.as_ref().is_some_and(ShownConversation::is_attached) && may_pass(error) =>
                {
                    if !std::mem::replace(&mut is_reported, true) {
                        self.notices.print(&[format!("lost the connection to {}; trying again", host.name)]);
                    }
                    thread::sleep(RETRY);
                }
                _ => break followed,
            }
        };
        let mut state = self.lock();
        state.failure = followed.err();
        state.own_turn = None;
        self.changed.notify_all();
    }

    fn follow_once(&self, shown: &mut Option<ShownConversation>, is_reported: &mut bool) -> Result<(), CallError> {
        let mut client = self.daemon.connect()?;
        client.call_streaming(Attach::NAME, &self.params, &mut |said: &RawValue| {
            // Ignore event types of newer daemons.
            let Ok(Progress { said, .. }) = serde_json::from_str(said.get()) else { return Ok(()) };
            let new = match shown {
                Some(shown) => shown.accept(said)?,
                None => vec![said],
            };
            if std::mem::take(is_reported) {
                self.notices.print(&["connected again".to_owned()]);
            }
            let mut state = self.lock();
            state.events.extend(new);
            if !state.is_held {
                self.show(&mut state);
            }
            self.changed.notify_all();
            Ok::<(), CallError>(())
        })?;
        Ok(())
    }

    /// Prints the events of the queue.
    fn show(&self, state: &mut State) {
        while let Some(event) = state.events.pop_front() {
            match (&event, state.own_turn) {
                (TurnEvent::Ended { turn_id, .. }, Some(own)) if *turn_id == own => state.own_turn = None,
                (TurnEvent::Message { .. }, _) | (_, None) => {
                    let lines = state.lines.push(&event);
                    self.notices.print(&lines);
                }
                _ => {}
            }
        }
    }
}

/// Returns true if the conversation may be followed again later.
fn may_pass(error: &CallError) -> bool {
    is_lost(error) || is_stopping(error) || matches!(error, CallError::Io(_)) && is_temporary(error)
}

impl State {
    fn has_ended(&self, turn: Uuid) -> bool {
        self.events.iter().any(|event| matches!(event, TurnEvent::Ended { turn_id, .. } if *turn_id == turn))
    }

    /// Removes the events of a turn of this chat, and the message that began it.
    fn remove_turn(&mut self, turn: Uuid) {
        let starts = |event: &TurnEvent| matches!(event, TurnEvent::Started { turn_id } if *turn_id == turn);
        let Some(start) = self.events.iter().position(starts) else { return };
        let is_message = |event: &TurnEvent| matches!(event, TurnEvent::Message { role: Role::User, .. });
        let begin = self.events.range(..start).rposition(is_message);
        let end =
            self.events.iter().position(|event| matches!(event, TurnEvent::Ended { turn_id, .. } if *turn_id == turn));
        if end.is_none() {
            self.own_turn = Some(turn);
        }
        let mut at = 0;
        self.events.retain(|event| {
            let is_own = Some(at) == begin
                || (start..=end.unwrap_or(usize::MAX)).contains(&at) && !matches!(event, TurnEvent::Message { .. });
            at += 1;
            !is_own
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> TurnEvent {
        TurnEvent::Message { id: String::new(), role: Role::User, text: text.into(), author: None }
    }

    #[test]
    fn of_the_events_those_of_the_own_turn_are_left_out() {
        let (own, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let text = |text: &str| TurnEvent::Text(text.into());
        let ended = |turn_id| TurnEvent::Ended { turn_id, reason: None };
        let events = vec![
            text("theirs"),
            ended(other),
            message("mine"),
            TurnEvent::Started { turn_id: own },
            text("for me"),
            message("appended meanwhile"),
            ended(own),
            message("news"),
        ];
        let lines = AttachedLines::new("api", 80);
        let mut state = State { events: events.into(), is_held: true, own_turn: None, lines, failure: None };
        assert!(state.has_ended(own));
        state.remove_turn(own);
        assert_eq!(state.events, [text("theirs"), ended(other), message("appended meanwhile"), message("news")]);
        assert_eq!(state.own_turn, None);
    }
}
