//! One client with an agent of its own: appends, saves, clears and restores, and a model of what must be there.

use chorus_proto::methods::context;
use chorus_proto::{CallError, Client, NewMessage, Role};
use chorus_tests::chat::Chat as _;
use chorus_tests::rng::Rng;

/// What an agent holds: its live context, and every saved one, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    live: Vec<String>,
    saved: Vec<Vec<String>>,
}

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<String>),
    Save { clear: bool },
    Clear,
    Restore,
}

/// The acknowledged state, and what it becomes if the request under way at the crash was carried out.
#[derive(Debug)]
pub struct Solo {
    agent: String,
    known: State,
    under_way: Option<State>,
    rng: Rng,
    count: u64,
}

impl Solo {
    pub fn new(agent: String, seed: u64) -> Self {
        Self { agent, known: State::default(), under_way: None, rng: Rng::new(seed), count: 0 }
    }

    /// Works until the daemon is gone; `acked` is called after each answer.
    pub fn work(&mut self, client: &mut Client, mut acked: impl FnMut()) {
        loop {
            let step = self.choose();
            self.under_way = Some(after(&self.known, &step));
            match self.ask(client, &step) {
                Ok(()) => self.known = self.under_way.take().expect("what was under way"),
                Err(CallError::Io(_)) => return,
                Err(other) => panic!("{step:?} of {}: {other}", self.agent),
            }
            acked();
        }
    }

    fn choose(&mut self) -> Step {
        let choice = self.rng.below(20);
        match choice {
            0..=1 if !self.known.live.is_empty() => Step::Save { clear: choice == 0 },
            2 if !self.known.live.is_empty() => Step::Clear,
            3 if !self.known.saved.is_empty() => Step::Restore,
            _ => Step::Append((0..=self.rng.below(3)).map(|_| self.text()).collect()),
        }
    }

    fn text(&mut self) -> String {
        self.count += 1;
        format!("{} {} {}", self.agent, self.count, "x".repeat(self.rng.below(600) as usize))
    }

    fn ask(&self, client: &mut Client, step: &Step) -> Result<(), CallError> {
        let agent = Some(self.agent.clone());
        match step {
            Step::Append(texts) => {
                let messages = texts.iter().map(|text| NewMessage::text(Role::User, text)).collect();
                let params = context::AppendParams { agent, messages, ..Default::default() };
                client.call::<context::Append>(&params).map(drop)
            }
            Step::Save { clear } => {
                let params = context::SaveParams { agent, clear: *clear, ..Default::default() };
                client.call::<context::Save>(&params).map(drop)
            }
            Step::Clear => client.call::<context::Clear>(&context::ClearParams { agent, save: false }).map(drop),
            Step::Restore => {
                let params =
                    context::RestoreParams { agent, session: "latest".into(), discard: true, ..Default::default() };
                client.call::<context::Restore>(&params).map(drop)
            }
        }
    }

    /// Compares with what the daemon has after its restart, and takes that as known.
    pub fn compare(&mut self, client: &mut Client) {
        let mut sessions = client.history(&self.agent);
        sessions.reverse();
        let saved = sessions.iter().map(|session| {
            let (again, messages) = client.session(&self.agent, &session.header.id.to_string());
            assert_eq!(again.header.message_count, messages.len() as u64);
            messages.into_iter().map(|message| message.content).collect()
        });
        let saved = saved.collect();
        let found = State { live: client.texts(&self.agent), saved };
        let allowed = [Some(&self.known), self.under_way.as_ref()];
        // A save that clears is two facts on disk; between them the context is saved and still live.
        let between =
            self.under_way.as_ref().map(|after| State { live: self.known.live.clone(), saved: after.saved.clone() });
        if !allowed.contains(&Some(&found)) && between.as_ref() != Some(&found) {
            let sizes = |state: &State| (state.live.len(), state.saved.iter().map(Vec::len).collect::<Vec<_>>());
            panic!(
                "{}: found {:?}, known {:?}, under way {:?}",
                self.agent,
                sizes(&found),
                sizes(&self.known),
                self.under_way.as_ref().map(sizes)
            );
        }
        self.known = found;
        self.under_way = None;
    }
}

/// The state once `step` has been carried out.
fn after(state: &State, step: &Step) -> State {
    let mut state = state.clone();
    match step {
        Step::Append(texts) => state.live.extend(texts.iter().cloned()),
        Step::Save { clear } => {
            state.saved.push(state.live.clone());
            if *clear {
                state.live.clear();
            }
        }
        Step::Clear => state.live.clear(),
        Step::Restore => state.live = state.saved.last().expect("a session").clone(),
    }
    state
}
