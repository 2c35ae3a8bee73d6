//! One client with an agent of its own: appends, saves, clears and restores, and a model of what must be there.

use chorus_proto::methods::context;
use chorus_proto::{CallError, Client, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::rng::Rng;
use uuid::Uuid;

/// The contents of messages.
type Texts = Vec<String>;

#[derive(Debug, Clone)]
enum Step {
    Append(Texts),
    Save { clear: bool },
    Clear,
    Restore(Uuid),
}

/// What was acknowledged, and what was asked for and never answered.
#[derive(Debug)]
pub struct Solo {
    agent: String,
    live: Texts,
    /// The acknowledged sessions, oldest first.
    saved: Vec<(Uuid, Texts)>,
    /// The request at the time of the crash.
    under_way: Option<Step>,
    /// Saves that a crash cut off and that are not there. Their files may be found when stock is taken, once each.
    unanswered: Vec<Texts>,
    rng: Rng,
    count: u64,
}

impl Solo {
    pub fn new(agent: String, seed: u64) -> Self {
        let (live, saved, unanswered) = (Vec::new(), Vec::new(), Vec::new());
        Self { agent, live, saved, under_way: None, unanswered, rng: Rng::new(seed), count: 0 }
    }

    /// Works until the daemon is gone; `acked` is called after each answer.
    pub fn work(&mut self, client: &mut Client, mut acked: impl FnMut()) {
        loop {
            let step = self.choose();
            self.under_way = Some(step.clone());
            match self.carry_out(client, step) {
                Ok(()) => self.under_way = None,
                Err(CallError::Io(_)) => return,
                Err(other) => panic!("{:?} of {}: {other}", self.under_way, self.agent),
            }
            acked();
        }
    }

    fn choose(&mut self) -> Step {
        let choice = self.rng.below(20);
        match (choice, self.saved.last()) {
            (0..=1, _) if !self.live.is_empty() => Step::Save { clear: choice == 0 },
            (2, _) if !self.live.is_empty() => Step::Clear,
            (3, Some((id, _))) => Step::Restore(*id),
            _ => Step::Append((0..=self.rng.below(3)).map(|_| self.text()).collect()),
        }
    }

    fn text(&mut self) -> String {
        self.count += 1;
        format!("{} {} {}", self.agent, self.count, "x".repeat(self.rng.below(600) as usize))
    }

    /// Asks for `step`, and keeps its effect once it is acknowledged.
    fn carry_out(&mut self, client: &mut Client, step: Step) -> Result<(), CallError> {
        let agent = Some(self.agent.clone());
        match step {
            Step::Append(texts) => {
                let messages = texts.iter().map(|text| NewMessage::text(Role::User, text)).collect();
                let params = context::AppendParams { agent, messages, ..Default::default() };
                client.call::<context::Append>(&params)?;
                self.live.extend(texts);
            }
            Step::Save { clear } => {
                let params = context::SaveParams { agent, clear, ..Default::default() };
                let session = client.call::<context::Save>(&params)?.session;
                self.saved.push((session.header.id, self.live.clone()));
                if clear {
                    self.live.clear();
                }
            }
            Step::Clear => {
                client.call::<context::Clear>(&context::ClearParams { conversation: None, agent, save: false })?;
                self.live.clear();
            }
            Step::Restore(id) => {
                let params =
                    context::RestoreParams { agent, session: id.to_string(), discard: true, ..Default::default() };
                client.call::<context::Restore>(&params)?;
                self.live = self.of(id);
            }
        }
        Ok(())
    }

    fn of(&self, session: Uuid) -> Texts {
        let found = self.saved.iter().find(|(id, _)| *id == session);
        found.expect("an acknowledged session").1.clone()
    }

    /// Compares with what the daemon has after its restart, and takes that as known.
    pub fn compare(&mut self, client: &mut Client) {
        let under_way = self.under_way.take();
        if let Some(Step::Save { .. }) = under_way {
            self.unanswered.push(self.live.clone());
        }
        let appeared = self.compare_sessions(client);
        let live = client.message_texts(&self.agent);
        let after = match under_way {
            Some(Step::Append(texts)) => [&self.live[..], &texts].concat(),
            // Saved first, cleared then: never the other way round.
            Some(Step::Save { clear: true }) if appeared.contains(&self.live) => Vec::new(),
            Some(Step::Clear) => Vec::new(),
            Some(Step::Restore(id)) => self.of(id),
            _ => self.live.clone(),
        };
        if live != self.live && live != after {
            let (agent, found, known, after) = (&self.agent, numbers(&live), numbers(&self.live), numbers(&after));
            panic!("{agent}: live are {found}\nacknowledged {known}\nor {after}");
        }
        self.live = live;
    }

    /// Every acknowledged session is there, in its order; gives the contents of those that nobody acknowledged.
    fn compare_sessions(&mut self, client: &mut Client) -> Vec<Texts> {
        let (mut known, mut appeared) = (Vec::new(), Vec::new());
        for session in client.history(&self.agent).into_iter().rev() {
            let (again, messages) = client.get_session(&self.agent, &session.header.id.to_string());
            assert_eq!(again.header.message_count, messages.len() as u64);
            let texts: Texts = messages.into_iter().map(|message| message.content).collect();
            let id = session.header.id;
            if !self.saved.iter().any(|(saved, _)| *saved == id) {
                let place = self.unanswered.iter().position(|unanswered| *unanswered == texts);
                let place = place.unwrap_or_else(|| panic!("{}: nobody saved {}", self.agent, numbers(&texts)));
                self.unanswered.remove(place);
                appeared.push(texts.clone());
            }
            known.push((id, texts));
        }
        let acknowledged = known.iter().filter(|entry| self.saved.contains(entry));
        assert!(acknowledged.eq(&self.saved), "{}: an acknowledged session is lost, changed or moved", self.agent);
        self.saved = known;
        appeared
    }
}

/// The numbers of messages, for people.
fn numbers(texts: &[String]) -> String {
    texts.iter().filter_map(|text| text.split(' ').nth(1)).collect::<Vec<_>>().join(" ")
}
