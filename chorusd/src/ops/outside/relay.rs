//! Messages from one agent to another. Each begins a turn in which no person asks for anything, so nothing is granted in it; how far
//! such turns go on from one another is bounded.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chorus_proto::methods::send::Said;
use chorus_proto::{Author, ErrorKind, NewMessage, Role, Source, SourceKind};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::agent::event::Verb;
use crate::agent::turn::Send;
use crate::agent::voice::{Ear, Voice};
use crate::clock::Ticks;
use crate::clock::new_id;
use crate::failure::{Failure, Result};
use crate::message::Stored;
use crate::ops::context::append::check_length;
use crate::ops::send::may_begin;
use crate::ops::{Ops, select};
use crate::tools::Asker;
use crate::who::Requester;

/// Turns that begin from one another, at most, after the one that a person asked for.
const HOPS: u32 = 3;

/// Messages of one agent in [`MINUTE`], at most.
const PER_MINUTE: usize = 10;

const MINUTE: Duration = Duration::from_secs(60);

/// Turns on the way that agents have begun, in all.
const UNDER_WAY: usize = 256;

/// What is known of turns that agents have begun.
#[derive(Debug, Default)]
pub struct Relay(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// How many turns stand between each and one that no agent began.
    hops: HashMap<Uuid, u32>,
    /// When each agent sent its last messages.
    sent: HashMap<Uuid, VecDeque<Ticks>>,
}

impl Relay {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a message that `from` sends in the turn `of`, and which begins the turn `begins`.
    fn count(&self, from: Uuid, of: Uuid, begins: Uuid, now: Ticks) -> Result<()> {
        let limit = |what: String, hint: &str| Err(Failure::new(ErrorKind::LimitReached, what).hint(hint));
        let mut inner = self.inner();
        let hops = inner.hops.get(&of).map_or(1, |hops| hops + 1);
        if hops > HOPS {
            let what = format!("agents have passed this on {HOPS} times already, and it goes no further");
            return limit(what, "say in your answer what is left to do");
        }
        if inner.hops.len() >= UNDER_WAY {
            return limit(format!("{UNDER_WAY} messages of agents are under way already"), "try again later");
        }
        let old = |at: &Ticks| at.after(MINUTE) <= now;
        inner.sent.retain(|_, times| {
            while times.front().is_some_and(old) {
                times.pop_front();
            }
            !times.is_empty()
        });
        let times = inner.sent.entry(from).or_default();
        if times.len() >= PER_MINUTE {
            return limit(format!("you have sent {PER_MINUTE} messages within a minute"), "wait a minute");
        }
        times.push_back(now);
        inner.hops.insert(begins, hops);
        Ok(())
    }

    fn ended(&self, turn: Uuid) {
        self.inner().hops.remove(&turn);
    }
}

/// Forgets a turn when it has ended, however that came.
struct Counted {
    relay: Arc<Relay>,
    turn: Uuid,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.relay.ended(self.turn);
    }
}

/// Hears whether a message was taken.
#[derive(Debug, Default)]
struct Taken {
    how: Mutex<Option<String>>,
    told: Notify,
}

impl Ear for Taken {
    fn now(&self, said: &Said) -> bool {
        let how = match said {
            Said::Started { .. } => "it has begun to work on it".to_owned(),
            Said::Queued { before, .. } => format!("it comes to it after {before} others"),
            _ => return true,
        };
        self.how.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(how);
        self.told.notify_one();
        true
    }

    fn later(&self, _: Said) {}
}

/// Begins a turn of `to` with `message`.
///
/// # Errors
/// `agent_not_found`, `invalid_params`, `limit_reached`, `busy`, and why that agent cannot answer.
pub async fn send(ops: &Ops, asker: Asker, to: String, message: String) -> Result<String> {
    let agent = select::agent(ops, Some(&to)).await?;
    if agent.facts.id == asker.agent {
        return Err(Failure::invalid("that is you; an agent sends nothing to itself"));
    }
    may_begin(ops, &agent.facts, &[]).await?;
    let text = format!("The agent {} sends this; no person has asked for it.\n\n{message}", asker.agent_name);
    let message = NewMessage {
        author: Some(Author { id: asker.agent.to_string(), name: asker.agent_name.clone() }),
        source: Some(Source { kind: SourceKind::Agent, channel_id: None, message_id: None, format: None }),
        ..NewMessage::text(Role::User, text)
    };
    let message = message.complete(|| new_id().to_string(), ops.clock.now());
    let message = Stored::new(&message).map_err(|e| Failure::invalid(format!("the message cannot be kept: {e}")))?;
    check_length(&message, ops.config.max_frame)?;
    let turn = new_id();
    ops.relay.count(asker.agent, asker.turn, turn, ops.clock.ticks())?;
    let counted = Counted { relay: ops.relay.clone(), turn };
    let taken = Arc::new(Taken::default());
    let voice = Voice::new(Some(taken.clone()));
    let send = Send { turn, message, key: None, again: false, voice, by: Requester::Nobody };
    let (registry, from, id) = (ops.registry.clone(), asker.agent_name, agent.facts.id);
    let name = to.clone();
    let mut turn = tokio::spawn(async move {
        let ended = registry.ask(id, Verb::Send(Box::new(send))).await;
        drop(counted);
        if let Err(failure) = &ended {
            tracing::info!(agent = %name, %from, %failure, "a turn that another agent asked for brought no answer");
        }
        ended.map(drop)
    });
    let told = tokio::select! {
        biased;
        () = taken.told.notified() => None,
        ended = &mut turn => Some(ended),
        () = asker.cancel.cancelled() => {
            return Err(Failure::new(ErrorKind::Interrupted, "the turn ended before the message was taken"));
        }
    };
    if let Some(ended) = told {
        ended.map_err(|e| Failure::internal(e.to_string()))??;
    }
    let how = taken.how.lock().unwrap_or_else(PoisonError::into_inner).take();
    let how = how.unwrap_or_else(|| "it has worked on it".into());
    Ok(format!("{to} has the message, and {how}; its answer does not come back by itself"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(result: Result<()>) -> Option<ErrorKind> {
        result.err().map(|failure| failure.kind)
    }

    #[test]
    fn what_is_passed_on_ends() {
        let (relay, agent, now) = (Relay::default(), Uuid::new_v4(), Ticks(0));
        let turns: Vec<Uuid> = (0..6).map(|_| Uuid::new_v4()).collect();
        for hop in 0..3 {
            assert_eq!(kind(relay.count(agent, turns[hop], turns[hop + 1], now)), None, "{hop}");
        }
        assert_eq!(kind(relay.count(agent, turns[3], turns[4], now)), Some(ErrorKind::LimitReached));
        relay.ended(turns[3]);
        assert_eq!(relay.inner().hops.len(), 2);
    }

    #[test]
    fn ten_in_a_minute_are_enough() {
        let (relay, agent, turn) = (Relay::default(), Uuid::new_v4(), Uuid::new_v4());
        let later = |seconds| Ticks(0).after(Duration::from_secs(seconds));
        for second in 0..10 {
            assert_eq!(kind(relay.count(agent, turn, Uuid::new_v4(), later(second))), None);
        }
        assert_eq!(kind(relay.count(agent, turn, Uuid::new_v4(), later(59))), Some(ErrorKind::LimitReached));
        assert_eq!(kind(relay.count(Uuid::new_v4(), turn, Uuid::new_v4(), later(59))), None, "another agent");
        assert_eq!(kind(relay.count(agent, turn, Uuid::new_v4(), later(60))), None);
        assert_eq!(kind(relay.count(agent, turn, Uuid::new_v4(), later(60))), Some(ErrorKind::LimitReached));
    }
}
