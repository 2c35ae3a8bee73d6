//! Notices of what happens to the conversation while the user types: idle saves, and what others write.

#![expect(clippy::disallowed_types, reason = "the client does without chorus_base")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::start;
use crate::commands::events::sentence;
use crate::ui::{Stderr, Style, sanitize, text};
use chorus_proto::event::{Event, EventType};
use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::methods::events::{Subscribe, SubscribeParams};
use chorus_proto::{CallError, ConversationRef, Message, Role};
use chorus_remote::DaemonAddress;

/// Prints lines above the line that is being edited.
pub(super) type LinePrinter = Box<dyn Fn(&[String]) + Send>;

/// How long the daemon may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait before a lost line to another machine is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// Messages of others that are shown of those that came at once.
const MAX_SHOWN_MESSAGES: u64 = 10;
/// How the idle notice names the command of Discord, and how it is called here.
const DISCORD_COMMAND: &str = "Use /context restore ";
const CHAT_COMMAND: &str = "Use /restore ";

/// Prints lines above the prompt, or before the next one.
#[derive(Clone)]
pub(super) struct NoticePrinter(Arc<Shared>);

impl NoticePrinter {
    pub(super) fn print(&self, lines: &[String]) {
        self.0.print(lines);
    }

    pub(super) fn width(&self) -> usize {
        self.0.width
    }
}

/// Follows the events of one conversation in a thread of its own, and prints notices above the line that is being edited.
pub(super) struct Notices {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

struct Shared {
    daemon: DaemonAddress,
    agent: String,
    /// `None` for `main`.
    conversation: Option<ConversationRef>,
    width: usize,
    /// Shows what others write; false if the chat is attached and learns of that in another way.
    shows_messages: bool,
    state: Mutex<NoticeState>,
}

struct NoticeState {
    /// False while a turn or a command of this chat runs. Its messages are not news, and notices wait for its end.
    is_prompting: bool,
    /// Messages of the conversation that the user has seen.
    seen: u64,
    pending: Vec<String>,
    printer: LinePrinter,
    last_event: Option<u64>,
}

impl Notices {
    /// Creates it without starting the thread. `seen` is the number of messages in the conversation, `printer` prints
    /// above the prompt.
    pub(super) fn new(
        daemon: DaemonAddress,
        (agent, conversation): (&str, Option<ConversationRef>),
        seen: u64,
        width: usize,
        printer: LinePrinter,
        shows_messages: bool,
    ) -> Self {
        let state = NoticeState { is_prompting: false, seen, pending: Vec::new(), printer, last_event: None };
        Self {
            shared: Arc::new(Shared {
                daemon,
                agent: agent.to_owned(),
                conversation,
                width,
                shows_messages,
                state: Mutex::new(state),
            }),
            thread: None,
        }
    }

    /// Returns what prints lines as notices are printed.
    pub(super) fn printer(&self) -> NoticePrinter {
        NoticePrinter(self.shared.clone())
    }

    /// Runs `read` while notices are printed as they come. Those that came before are printed first.
    pub(super) fn while_prompting<T>(&mut self, stderr: Stderr, read: impl FnOnce() -> T) -> T {
        self.ensure_following();
        let waiting = {
            let mut state = self.shared.lock();
            state.is_prompting = true;
            std::mem::take(&mut state.pending)
        };
        waiting.iter().for_each(|notice| stderr.quoted_line(Style::Plain, notice));
        let read = read();
        self.shared.lock().is_prompting = false;
        read
    }

    /// Records how many messages the conversation has after a turn or command of this chat.
    pub(super) fn mark_seen(&self, messages: u64) {
        self.shared.lock().seen = messages;
    }

    /// Starts the thread, or starts it again if the daemon went away.
    fn ensure_following(&mut self) {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let shared = self.shared.clone();
        // A chat works without notices, so errors are ignored.
        let follow = move || {
            while shared.follow().is_err() && shared.daemon.host().is_some() {
                thread::sleep(RETRY);
            }
        };
        self.thread = thread::Builder::new().name("notices".into()).spawn(follow).ok();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, NoticeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the events until the connection ends.
    fn follow(&self) -> Result<(), CallError> {
        let mut client = self.daemon.connect()?;
        client.set_timeout(Some(ANSWER_TIMEOUT))?;
        let after = self.lock().last_event;
        client.call::<Subscribe>(&SubscribeParams { after })?;
        client.set_timeout(None)?;
        if after.is_none() && self.shows_messages {
            self.show_unseen();
        }
        loop {
            let (method, params) = client.next_notification()?;
            if method == "event"
                && let Ok(event) = serde_json::from_str::<Event>(params.get())
            {
                self.on_event(&event);
            }
        }
    }

    fn on_event(&self, event: &Event) {
        self.lock().last_event = Some(event.seq);
        let conversation = self.conversation.as_ref().map(|conversation| &*conversation.name);
        if event.agent.as_deref() != Some(&self.agent) || event.conversation.as_deref() != conversation {
            return;
        }
        let number = |name: &str| event.data[name].as_u64().unwrap_or(0);
        match event.kind {
            EventType::Notice => {
                if let Some(notice) = event.data["text"].as_str() {
                    self.print(&[notice.replace(DISCORD_COMMAND, CHAT_COMMAND)]);
                }
            }
            EventType::ContextCleared | EventType::ContextRestored | EventType::ContextRewound => {
                let is_prompting = {
                    let mut state = self.lock();
                    if state.is_prompting {
                        state.seen = number("messages");
                    }
                    state.is_prompting
                };
                // While this chat runs a command itself, that command prints what it did.
                if is_prompting && event.kind == EventType::ContextRewound {
                    self.print(&[sentence::describe(event)]);
                }
            }
            EventType::MessageAppended if !self.shows_messages => {}
            EventType::MessageAppended => self.on_appended(number("messages"), number("appended")),
            _ => {}
        }
    }

    /// Shows the messages that came, unless this chat brought them.
    fn on_appended(&self, messages: u64, appended: u64) {
        let from = {
            let mut state = self.lock();
            if !state.is_prompting {
                state.seen = state.seen.max(messages);
            }
            if messages <= state.seen {
                return;
            }
            let from = state.seen.max(messages.saturating_sub(appended));
            state.seen = messages;
            from
        };
        match self.fetch(from, messages - from) {
            Ok(came) => {
                let lines: Vec<String> = came.iter().flat_map(|message| self.describe(message)).collect();
                self.print(&lines);
            }
            Err(_) => self.print(&["a message was added to the conversation; see it with /show".to_owned()]),
        }
    }

    /// Shows the messages that came after the chat was opened and before its events were followed.
    fn show_unseen(&self) {
        let from = self.lock().seen;
        let Ok(came) = self.fetch(from, MAX_SHOWN_MESSAGES) else { return };
        {
            let mut state = self.lock();
            // Otherwise this chat brought them.
            if !state.is_prompting || state.seen != from {
                return;
            }
            state.seen = from + came.len() as u64;
        }
        let lines: Vec<String> = came.iter().flat_map(|message| self.describe(message)).collect();
        self.print(&lines);
    }

    fn fetch(&self, offset: u64, count: u64) -> Result<Vec<Message>, CallError> {
        let mut client = self.daemon.connect()?;
        client.set_timeout(Some(ANSWER_TIMEOUT))?;
        let limit = Some(count.min(MAX_SHOWN_MESSAGES));
        let conversation = self.conversation.as_ref().map(|conversation| conversation.id.to_string());
        let agent = Some(self.agent.clone());
        let params = ShowParams { agent, conversation, offset: Some(offset), limit, ..ShowParams::default() };
        Ok(client.call::<Show>(&params)?.messages)
    }

    /// Returns the first lines of a message of somebody else. What tools return is left out.
    fn describe(&self, message: &Message) -> Vec<String> {
        let who = match message.role {
            Role::ToolResult => return Vec::new(),
            Role::Assistant => sanitize::one_line(&self.agent),
            Role::User | Role::System => message
                .author
                .as_ref()
                .map_or_else(|| "another client".to_owned(), |author| sanitize::one_line(&author.name)),
        };
        start::message_lines(message, &who, self.width)
    }

    fn print(&self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let lines: Vec<String> = lines.iter().map(|line| sanitize::multi_line(line).into_owned()).collect();
        let mut state = self.lock();
        let prompting = state.is_prompting;
        if prompting {
            let wrapped: Vec<String> =
                lines.iter().flat_map(|line| text::wrap(line, self.width)).map(Into::into).collect();
            (state.printer)(&wrapped);
        } else {
            state.pending.extend(lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(kind: EventType, agent: &str, data: Value) -> Event {
        Event {
            seq: 1,
            time: jiff::Timestamp::UNIX_EPOCH,
            kind,
            agent: Some(agent.into()),
            conversation: None,
            data,
            node: None,
        }
    }

    #[test]
    fn an_idle_notice_names_the_command_of_the_chat_and_waits_while_a_turn_runs() {
        let printed = Arc::new(Mutex::new(String::new()));
        let kept = printed.clone();
        let printer = move |lines: &[String]| kept.lock().expect("no panic").push_str(&(lines.join(" ") + " "));
        let paths = chorus_proto::paths::InstancePaths {
            home: "/h".into(),
            socket: "/h/no-socket".into(),
            config: "/h/c".into(),
            socket_is_explicit: true,
        };
        let notices = Notices::new(paths.into(), ("a", None), 3, 80, Box::new(printer), true);
        let shared = notices.shared;
        let saved = json!({"text": "Session saved: x. Context cleared after 30 minutes of inactivity. Use /context restore 1f3a to resume."});
        shared.on_event(&event(EventType::Notice, "a", saved.clone()));
        assert_eq!(shared.lock().pending.len(), 1);
        shared.lock().is_prompting = true;
        shared.on_event(&event(EventType::Notice, "other", saved.clone()));
        shared.on_event(&event(EventType::Notice, "a", saved));
        let beside =
            Event { conversation: Some("beside".into()), ..event(EventType::Notice, "a", json!({"text": "no"})) };
        shared.on_event(&beside);
        let text = printed.lock().expect("no panic").clone();
        assert_eq!((text.matches("Session saved").count(), text.matches("no").count()), (1, 0));
        assert!(text.contains("Use /restore 1f3a to resume."), "{text}");
        // What this chat wrote itself is no news.
        shared.on_event(&event(EventType::MessageAppended, "a", json!({"appended": 1, "messages": 3})));
        assert!(!printed.lock().expect("no panic").contains("message was added"));
        shared.on_event(&event(EventType::MessageAppended, "a", json!({"appended": 1, "messages": 4})));
        assert!(printed.lock().expect("no panic").contains("message was added"), "it could not be fetched");
    }
}
