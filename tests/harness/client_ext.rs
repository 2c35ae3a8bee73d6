//! Short forms of the calls that nearly every test makes.

use chorus_proto::methods::{agent, context, conversations, daemon, events, session};
use chorus_proto::{Agent, CallError, Client, ErrorKind, Event, Message, NewMessage, Role, Session};

/// Short forms of requests; they panic if the daemon answers with an error.
pub trait ClientExt {
    fn init(&mut self, name: &str);
    fn append(&mut self, agent: &str, text: &str) -> u64;
    fn append_all(&mut self, agent: &str, messages: Vec<NewMessage>) -> u64;
    fn message_texts(&mut self, agent: &str) -> Vec<String>;
    fn messages(&mut self, agent: &str) -> Vec<Message>;
    /// Returns true if the agent has this conversation.
    fn conversation_exists(&mut self, agent: &str, conversation: &str) -> bool;
    /// Returns the messages of a conversation's live context.
    fn messages_in(&mut self, agent: &str, conversation: &str) -> Vec<Message>;
    fn pinned_facts(&mut self, agent: &str) -> Vec<String>;
    fn agent_status(&mut self, agent: &str) -> Agent;
    fn save(&mut self, agent: &str, description: &str) -> Session;
    fn history(&mut self, agent: &str) -> Vec<Session>;
    fn get_session(&mut self, agent: &str, selector: &str) -> (Session, Vec<Message>);
    fn restore(&mut self, agent: &str, selector: &str) -> context::RestoreResult;
    /// All kept events after number `after`.
    fn events(&mut self, after: u64) -> Vec<Event>;
}

impl ClientExt for Client {
    fn init(&mut self, name: &str) {
        let params = agent::InitParams { name: name.into(), ..Default::default() };
        self.call::<agent::Init>(&params).expect("agent.init");
    }

    fn append(&mut self, agent: &str, text: &str) -> u64 {
        self.append_all(agent, vec![NewMessage::text(Role::User, text)])
    }

    fn append_all(&mut self, agent: &str, messages: Vec<NewMessage>) -> u64 {
        let params = context::AppendParams { agent: Some(agent.into()), messages, ..Default::default() };
        self.call::<context::Append>(&params).expect("context.append").messages
    }

    fn message_texts(&mut self, agent: &str) -> Vec<String> {
        self.messages(agent).into_iter().map(|message| message.content).collect()
    }

    fn messages(&mut self, agent: &str) -> Vec<Message> {
        self.messages_in(agent, "main")
    }

    fn conversation_exists(&mut self, agent: &str, conversation: &str) -> bool {
        let params = conversations::ListParams { agent: Some(agent.into()), ..Default::default() };
        let listed = self.call::<conversations::List>(&params).expect("conversations.list");
        listed.conversations.iter().any(|found| found.name == conversation)
    }

    fn messages_in(&mut self, agent: &str, conversation: &str) -> Vec<Message> {
        let mut all = Vec::new();
        let mut offset = Some(0);
        // As a client of before asks for `main`.
        let conversation = Some(conversation.to_owned()).filter(|name| name != "main");
        while offset.is_some() {
            let conversation = conversation.clone();
            let params = context::ShowParams { agent: Some(agent.into()), conversation, offset, ..Default::default() };
            let page = self.call::<context::Show>(&params).expect("context.show");
            assert!(page.next.is_none_or(|next| next > offset.unwrap_or(0)), "a page that does not end");
            all.extend(page.messages);
            offset = page.next;
        }
        all
    }

    fn pinned_facts(&mut self, agent: &str) -> Vec<String> {
        let params = context::ShowParams { agent: Some(agent.into()), ..Default::default() };
        let shown = self.call::<context::Show>(&params).expect("context.show");
        shown.working_set.pinned_facts.into_iter().map(|fact| fact.text).collect()
    }

    fn agent_status(&mut self, agent: &str) -> Agent {
        let params = daemon::StatusParams { agent: Some(agent.into()), limit: None };
        self.call::<daemon::Status>(&params).expect("status").agents.pop().expect("the agent")
    }

    fn save(&mut self, agent: &str, description: &str) -> Session {
        let params = context::SaveParams {
            agent: Some(agent.into()),
            description: (!description.is_empty()).then(|| description.into()),
            ..Default::default()
        };
        self.call::<context::Save>(&params).expect("context.save").session
    }

    fn history(&mut self, agent: &str) -> Vec<Session> {
        let mut all = Vec::new();
        for page in 1.. {
            let params = context::HistoryParams {
                agent: Some(agent.into()),
                page: Some(page),
                limit: Some(1000),
                ..Default::default()
            };
            let result = self.call::<context::History>(&params).expect("context.history");
            // The prefix depends on the other sessions; nothing else tells a session apart from what a save returned.
            all.extend(result.sessions.into_iter().map(|session| Session { unique_prefix: None, ..session }));
            if page >= result.pages {
                break;
            }
        }
        all
    }

    fn get_session(&mut self, agent: &str, selector: &str) -> (Session, Vec<Message>) {
        let mut all = Vec::new();
        let mut offset = 0;
        loop {
            let params = session::GetParams {
                agent: Some(agent.into()),
                session: selector.into(),
                offset: Some(offset),
                ..Default::default()
            };
            let page = self.call::<session::Get>(&params).expect("session.get");
            all.extend(page.messages);
            match page.next {
                Some(next) if next > offset => offset = next,
                Some(next) => panic!("page {next} after {offset}"),
                None => return (page.session, all),
            }
        }
    }

    fn restore(&mut self, agent: &str, selector: &str) -> context::RestoreResult {
        let params =
            context::RestoreParams { agent: Some(agent.into()), session: selector.into(), ..Default::default() };
        self.call::<context::Restore>(&params).expect("context.restore")
    }

    fn events(&mut self, after: u64) -> Vec<Event> {
        let mut all = Vec::new();
        let mut after = Some(after);
        while after.is_some() {
            let page = self.call::<events::List>(&events::ListParams { after, limit: None }).expect("events.list");
            all.extend(page.events);
            after = page.next;
        }
        all
    }
}

/// Returns the kind of the error that the daemon answered with; panics on any other outcome.
pub fn expect_error_kind<T: std::fmt::Debug>(answer: Result<T, CallError>) -> ErrorKind {
    match answer {
        Err(CallError::Rpc(error)) => error.kind(),
        other => panic!("an error was due, not {other:?}"),
    }
}
