//! Sends messages from one agent to another. Each message begins a turn that no person has requested, so nothing is
//! granted in it. Chains of such turns are limited.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use chorus_agent_core::turn::TurnRequest;
use chorus_agent_core::turn_sink::{TurnListener, TurnSink};
use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use chorus_base::{Ticks, new_id};
use chorus_proto::methods::send::TurnEvent;
use chorus_proto::pluralize::pluralize;
use chorus_proto::{Author, ErrorKind, NewMessage, Role, Source, SourceKind};
use chorus_session::stored_message::StoredMessage;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::agent::agent_index::AgentEntry;
use crate::agent::command;
use crate::ops::Ops;
use crate::ops::context::append::check_length;
use crate::ops::conversations::{ConversationTarget, Opener};
use crate::ops::send::ensure_can_begin;
use crate::tools::ToolCaller;

/// The limit on turns that follow from one another, not counting the first one, which a person requested.
const MAX_HOPS: u32 = 3;

/// The limit on messages of one agent within [`RATE_WINDOW`].
const MAX_PER_WINDOW: usize = 10;

const RATE_WINDOW: Duration = Duration::from_secs(60);

/// The limit on concurrent turns that agents have begun.
const MAX_RUNNING_TURNS: usize = 256;

/// Limits on the turns that agents begin.
#[derive(Debug, Default)]
pub struct AgentMessageLimits(Mutex<LimitsState>);

#[derive(Debug, Default)]
struct LimitsState {
    /// The running turns that agents have begun.
    turns: HashMap<Uuid, BegunTurn>,
    /// When each agent sent its last messages.
    sent: HashMap<Uuid, VecDeque<Ticks>>,
}

/// A turn that an agent has begun.
#[derive(Debug, Clone, Default)]
struct BegunTurn {
    /// The number of hops back to a turn that no agent began.
    hops: u32,
    /// The agents that wait for its answer, directly or through others.
    waiting: Vec<Uuid>,
}

/// A message from a turn of an agent that begins a turn of another one.
#[derive(Debug, Clone, Copy)]
struct Passage {
    from: Uuid,
    /// The turn of `from`.
    of: Uuid,
    to: Uuid,
    /// The turn of `to`.
    begins: Uuid,
    /// True if `from` waits for the answer.
    waits: bool,
}

impl AgentMessageLimits {
    /// Counts a message. Fails if a limit is reached, or if agents would wait for each other.
    fn count_message(&self, passage: Passage, now: Ticks) -> Result<()> {
        let Passage { from, of, to, begins, waits } = passage;
        let limit = |what: String, hint: &str| Err(Error::new(ErrorKind::LimitReached, what).hint(hint));
        let mut inner = self.0.lock();
        let BegunTurn { hops, mut waiting } = inner.turns.get(&of).cloned().unwrap_or_default();
        let hops = hops + 1;
        if waits {
            waiting.push(from);
            if waiting.contains(&to) {
                return limit(
                    "that agent waits for your answer, so you cannot wait for its".to_owned(),
                    "send the message without `wait`, or put the question into your reply",
                );
            }
        } else {
            waiting.clear();
        }
        if hops > MAX_HOPS {
            let what = format!("agents have already forwarded this {MAX_HOPS} times, which is the limit");
            return limit(what, "list the remaining work in your reply");
        }
        if inner.turns.len() >= MAX_RUNNING_TURNS {
            return limit(
                format!("{MAX_RUNNING_TURNS} messages between agents are already in progress"),
                "try again later",
            );
        }
        let old = |at: &Ticks| at.after(RATE_WINDOW) <= now;
        inner.sent.retain(|_, times| {
            while times.front().is_some_and(old) {
                times.pop_front();
            }
            !times.is_empty()
        });
        let times = inner.sent.entry(from).or_default();
        if times.len() >= MAX_PER_WINDOW {
            return limit(
                format!("you sent {MAX_PER_WINDOW} messages within a minute, which is the limit"),
                "wait a minute",
            );
        }
        times.push_back(now);
        inner.turns.insert(begins, BegunTurn { hops, waiting });
        Ok(())
    }

    fn on_turn_ended(&self, turn: Uuid) {
        self.0.lock().turns.remove(&turn);
    }
}

/// Removes a turn from the limits when it ends for whatever reason.
struct TurnGuard {
    limits: Arc<AgentMessageLimits>,
    turn: Uuid,
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        self.limits.on_turn_ended(self.turn);
    }
}

/// Learns when the turn of a message begins or is queued.
#[derive(Debug, Default)]
struct AcceptanceListener {
    outcome: Mutex<Option<String>>,
    accepted: Notify,
}

impl TurnListener for AcceptanceListener {
    fn try_send(&self, event: &TurnEvent) -> bool {
        let how = match event {
            TurnEvent::Started { .. } => "started working on it".to_owned(),
            TurnEvent::Queued { before, .. } => format!("queued it after {}", pluralize(*before, "other message")),
            _ => return true,
        };
        self.outcome.lock().get_or_insert(how);
        self.accepted.notify_one();
        true
    }

    fn send_when_ready(&self, _: TurnEvent) {}
}

/// Begins a turn of `to` with `message`, in that agent's conversation with the asker. Returns when the message is
/// accepted; with `wait`, when the turn has ended or that time is over.
///
/// # Errors
/// `agent_not_found`, `invalid_params`, `limit_reached`, `busy`, or the reason why that agent cannot begin a turn. With
/// `wait` also the error that the turn ended with.
pub(super) async fn send_message(
    ops: &Ops,
    asker: ToolCaller,
    to: String,
    message: String,
    wait: Option<Duration>,
) -> Result<String> {
    let agent = ops.agent_resolver.resolve(Some(&to)).await?;
    if agent.settings.id == asker.agent {
        return Err(Error::invalid("an agent cannot send messages to itself"));
    }
    ensure_can_begin(&ops.models, &ops.usage, &agent.settings, &[]).await?;
    let text = format!("Message from agent {} (not from a person):\n\n{message}", asker.agent_name);
    let message = NewMessage {
        author: Some(Author { id: asker.agent.to_string(), name: asker.agent_name.clone() }),
        source: Some(Source { kind: SourceKind::Agent, channel_id: None, message_id: None, format: None }),
        ..NewMessage::text(Role::User, text)
    };
    let message = message.complete(|| new_id().to_string(), ops.clock.now());
    let message = StoredMessage::new(&message).map_err(|e| Error::invalid(format!("cannot store the message: {e}")))?;
    check_length(&message, ops.config.max_frame)?;
    let turn = new_id();
    let (from, of, waits) = (asker.agent, asker.turn, wait.is_some());
    let passage = Passage { from, of, to: agent.settings.id, begins: turn, waits };
    ops.agent_message_limits.count_message(passage, ops.clock.ticks())?;
    let counted = TurnGuard { limits: ops.agent_message_limits.clone(), turn };
    let taken = Arc::new(AcceptanceListener::default());
    let sink = TurnSink::new(Some(taken.clone()));
    let send = TurnRequest {
        turn,
        message,
        key: None,
        model: None,
        resume_if_unstarted: false,
        is_repeated: false,
        sink,
        requester: Requester::Nobody,
    };
    let target = conversation_with(ops, agent, &asker).await?;
    let (registry, from) = (ops.registry.clone(), asker.agent_name);
    let name = to.clone();
    let mut turn = chorus_runtime::spawn(async move {
        let ended = registry.ask(target.key, command::send(send)).await;
        drop((counted, target));
        if let Err(failure) = &ended {
            tracing::info!(agent = %name, %from, %failure, "a turn requested by another agent failed");
        }
        ended
    });
    let late = ops.clock.ticks().after(wait.unwrap_or_default());
    let ended = tokio::select! {
        biased;
        () = taken.accepted.notified(), if wait.is_none() => None,
        ended = &mut turn => Some(ended),
        () = ops.clock.sleep_until(late), if wait.is_some() => None,
        () = asker.cancel.cancelled() => {
            let until = if taken.outcome.lock().is_some() { "the reply came" } else { "the message was accepted" };
            return Err(Error::new(ErrorKind::Interrupted, format!("the turn ended before {until}")));
        }
    };
    let reply = match ended {
        Some(ended) => Some(ended.map_err(|e| Error::internal(e.to_string()))??.reply),
        None => None,
    };
    let how = taken.outcome.lock().take();
    // A turn that ended at once was never queued; one that did not end was not accepted yet.
    let unknown = if reply.is_some() { "processed it" } else { "has not started working on it" };
    let how = how.unwrap_or_else(|| unknown.into());
    Ok(match (reply, wait) {
        (Some(reply), Some(_)) => format!("{to} replied:\n\n{reply}"),
        (None, Some(wait)) => format!(
            "{to} received the message and {how}, but has not replied within {} s; its reply will not be sent to you",
            wait.as_secs()
        ),
        (_, None) => {
            format!("{to} received the message and {how}; its reply is not sent back to you automatically")
        }
    })
}

/// Returns the conversation in which an agent talks with the one that asks, so that its own are not broken into.
async fn conversation_with(ops: &Ops, agent: Arc<AgentEntry>, asker: &ToolCaller) -> Result<ConversationTarget> {
    let opener = Opener { origin: Some(format!("agent:{}", asker.agent)), title: None };
    let name = format!("from-{}", asker.agent_name);
    let (key, _) = ops.agent_resolver.new_conversation(&agent, &name, opener).await?;
    ops.agent_resolver.prepare_to_write(ConversationTarget::new(agent, key)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(result: Result<()>) -> Option<ErrorKind> {
        result.err().map(|failure| failure.kind)
    }

    /// A message from an agent with another one, which ends the turn `of` or not.
    fn passage(from: Uuid, of: Uuid, begins: Uuid) -> Passage {
        Passage { from, of, to: Uuid::nil(), begins, waits: false }
    }

    #[test]
    fn agents_do_not_wait_for_each_other() {
        let (limits, now) = (AgentMessageLimits::default(), Ticks(0));
        let [a, b, c] = [1, 2, 3].map(Uuid::from_u128);
        let [first, second, third] = [11, 12, 13].map(Uuid::from_u128);
        let ask =
            |from, of, to, begins, waits| kind(limits.count_message(Passage { from, of, to, begins, waits }, now));
        assert_eq!(ask(a, Uuid::nil(), b, first, true), None);
        assert_eq!(ask(b, first, a, second, true), Some(ErrorKind::LimitReached), "a waits for b");
        assert_eq!(ask(b, first, c, second, true), None);
        assert_eq!(ask(c, second, a, third, true), Some(ErrorKind::LimitReached), "a waits through b");
        assert_eq!(ask(c, second, a, third, false), None, "it need not wait");
    }

    #[test]
    fn what_is_passed_on_ends() {
        let (relay, agent, now) = (AgentMessageLimits::default(), Uuid::new_v4(), Ticks(0));
        let turns: Vec<Uuid> = (0..6).map(|_| Uuid::new_v4()).collect();
        for hop in 0..3 {
            assert_eq!(kind(relay.count_message(passage(agent, turns[hop], turns[hop + 1]), now)), None, "{hop}");
        }
        assert_eq!(kind(relay.count_message(passage(agent, turns[3], turns[4]), now)), Some(ErrorKind::LimitReached));
        relay.on_turn_ended(turns[3]);
        assert_eq!(relay.0.lock().turns.len(), 2);
    }

    #[test]
    fn ten_in_a_minute_are_enough() {
        let (relay, agent, turn) = (AgentMessageLimits::default(), Uuid::new_v4(), Uuid::new_v4());
        let later = |seconds| Ticks(0).after(Duration::from_secs(seconds));
        for second in 0..10 {
            assert_eq!(kind(relay.count_message(passage(agent, turn, Uuid::new_v4()), later(second))), None);
        }
        assert_eq!(
            kind(relay.count_message(passage(agent, turn, Uuid::new_v4()), later(59))),
            Some(ErrorKind::LimitReached)
        );
        assert_eq!(
            kind(relay.count_message(passage(Uuid::new_v4(), turn, Uuid::new_v4()), later(59))),
            None,
            "another agent"
        );
        assert_eq!(kind(relay.count_message(passage(agent, turn, Uuid::new_v4()), later(60))), None);
        assert_eq!(
            kind(relay.count_message(passage(agent, turn, Uuid::new_v4()), later(60))),
            Some(ErrorKind::LimitReached)
        );
    }
}
