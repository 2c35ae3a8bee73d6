//! Clients that append, run turns, save and restore.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chorus_proto::methods::context::{Restore, RestoreParams, Save, SaveParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::{CallError, Client, ErrorKind};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::rng::Rng;

use super::super::try_append;
use super::{Chaos, pick};

/// All nodes.
const ANY: [usize; 3] = [0, 1, 2];

/// A session that was acknowledged, with the texts that it has.
pub(super) struct Saved {
    pub(super) session: String,
    pub(super) texts: Vec<String>,
    pub(super) is_exact: bool,
}

/// An agent that one client alone uses, so that it knows what is there.
pub(super) struct OwnAgent {
    pub(super) name: String,
    /// Texts of its context.
    pub(super) texts: Vec<String>,
    /// Texts of turns that were interrupted: they may be there, with an answer or without, also later than what follows.
    pub(super) uncertain: HashSet<String>,
    /// False once a restore may be carried out for a second time.
    pub(super) is_exact: bool,
    pub(super) appended: Vec<String>,
    pub(super) saves: Vec<Saved>,
}

/// A client.
pub(super) struct Worker {
    chaos: Arc<Chaos>,
    writer: u64,
    rng: Rng,
    number: u64,
    pub(super) agents: Vec<OwnAgent>,
}

impl Worker {
    pub(super) fn create(chaos: &Arc<Chaos>, seed: u64, writer: u64, client: &mut Client) -> Self {
        let agents = (0..if chaos.is_long { 6 } else { 2 }).map(|number| {
            let name = format!("own-{writer}-{number}");
            client.init(&name);
            OwnAgent {
                name,
                texts: Vec::new(),
                uncertain: HashSet::new(),
                is_exact: true,
                appended: Vec::new(),
                saves: Vec::new(),
            }
        });
        let rng = Rng::new(seed.wrapping_mul(1_000).wrapping_add(writer));
        Self { chaos: chaos.clone(), writer, rng, number: 0, agents: agents.collect() }
    }

    /// Sends requests until the faults are over.
    pub(super) fn run(&mut self) {
        while !self.chaos.over.load(Ordering::Relaxed) {
            self.append_shared();
            let at = pick(&mut self.rng, self.agents.len());
            match self.rng.below(10) {
                0..5 => self.append(at),
                5..7 => self.run_turn(at),
                7..9 => self.save(at),
                _ => self.restore(at),
            }
        }
    }

    fn next_text(&mut self) -> String {
        self.number += 1;
        format!("m{}.{}", self.writer, self.number)
    }

    fn append_shared(&mut self) {
        let text = self.next_text();
        let name = self.chaos.shared[pick(&mut self.rng, self.chaos.shared.len())].clone();
        self.chaos.until_answered(&text, (&mut self.rng, &ANY), |client| try_append(client, &name, &text));
        self.chaos.counts.appends.fetch_add(1, Ordering::Relaxed);
        self.chaos.acknowledged.lock().push((name, text));
    }

    fn append(&mut self, at: usize) {
        let text = self.next_text();
        let agent = &mut self.agents[at];
        self.chaos.until_answered(&text, (&mut self.rng, &ANY), |client| try_append(client, &agent.name, &text));
        self.chaos.counts.appends.fetch_add(1, Ordering::Relaxed);
        agent.texts.push(text.clone());
        agent.appended.push(text);
    }

    fn run_turn(&mut self, at: usize) {
        let text = self.next_text();
        let agent = &mut self.agents[at];
        let params = SendParams {
            agent: Some(agent.name.clone()),
            text: text.clone(),
            key: Some(text.clone()),
            ..Default::default()
        };
        // `None` if the turn has ended without a reply.
        let (reply, _) =
            self.chaos.until_answered(&text, (&mut self.rng, &ANY), |client| match client.call::<Send>(&params) {
                Ok(sent) => Ok(Some(sent.reply)),
                Err(CallError::Rpc(error)) if error.kind() == ErrorKind::Interrupted => Ok(None),
                Err(failure) => Err(failure),
            });
        match reply {
            Some(reply) => {
                assert_eq!(reply, format!("re {text}"), "{}", agent.name);
                self.chaos.counts.turns.fetch_add(1, Ordering::Relaxed);
                agent.appended.push(text.clone());
                agent.texts.extend([text, reply]);
            }
            None => {
                self.chaos.counts.interrupted.fetch_add(1, Ordering::Relaxed);
                agent.uncertain.insert(text);
            }
        }
    }

    fn save(&mut self, at: usize) {
        let agent = &mut self.agents[at];
        if agent.texts.is_empty() {
            return;
        }
        let params = SaveParams { agent: Some(agent.name.clone()), ..Default::default() };
        let what = format!("a save of {}", agent.name);
        let (saved, _) = self.chaos.until_answered(&what, (&mut self.rng, &ANY), |client| client.call::<Save>(&params));
        self.chaos.counts.saves.fetch_add(1, Ordering::Relaxed);
        let session = saved.session.header.id.to_string();
        agent.saves.push(Saved { session, texts: agent.texts.clone(), is_exact: agent.is_exact });
    }

    fn restore(&mut self, at: usize) {
        let agent = &mut self.agents[at];
        if agent.saves.is_empty() {
            return;
        }
        let number = pick(&mut self.rng, agent.saves.len());
        let saved = &agent.saves[number];
        let params =
            RestoreParams { agent: Some(agent.name.clone()), session: saved.session.clone(), ..Default::default() };
        let what = format!("a restore of {}", agent.name);
        let (_, is_uncertain) =
            self.chaos.until_answered(&what, (&mut self.rng, &ANY), |client| client.call::<Restore>(&params));
        self.chaos.counts.restores.fetch_add(1, Ordering::Relaxed);
        agent.texts.clone_from(&saved.texts);
        agent.is_exact = agent.is_exact && saved.is_exact && !is_uncertain;
    }
}
