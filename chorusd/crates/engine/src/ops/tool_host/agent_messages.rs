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
use chorus_proto::{Author, ErrorKind, NewMessage, Role, Source, SourceKind};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::agent::command;
use crate::ops::Ops;
use crate::ops::context::append::check_length;
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
    /// The number of hops from each running turn back to one that no agent began.
    hops: HashMap<Uuid, u32>,
    /// When each agent sent its last messages.
    sent: HashMap<Uuid, VecDeque<Ticks>>,
}

impl AgentMessageLimits {
    /// Counts a message that `from` sends in the turn `of`, and that begins the turn `begins`. Fails if a limit is
    /// reached.
    fn count_message(&self, from: Uuid, of: Uuid, begins: Uuid, now: Ticks) -> Result<()> {
        let limit = |what: String, hint: &str| Err(Error::new(ErrorKind::LimitReached, what).hint(hint));
        let mut inner = self.0.lock();
        let hops = inner.hops.get(&of).map_or(1, |hops| hops + 1);
        if hops > MAX_HOPS {
            let what = format!("agents have already forwarded this {MAX_HOPS} times, which is the limit");
            return limit(what, "list the remaining work in your reply");
        }
        if inner.hops.len() >= MAX_RUNNING_TURNS {
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
        inner.hops.insert(begins, hops);
        Ok(())
    }

    fn on_turn_ended(&self, turn: Uuid) {
        self.0.lock().hops.remove(&turn);
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
            TurnEvent::Queued { before, .. } => format!("queued it after {before} others"),
            _ => return true,
        };
        self.outcome.lock().get_or_insert(how);
        self.accepted.notify_one();
        true
    }

    fn send_when_ready(&self, _: TurnEvent) {}
}

/// Begins a turn of `to` with `message`. Returns without waiting for its reply.
///
/// # Errors
/// `agent_not_found`, `invalid_params`, `limit_reached`, `busy`, or the reason why that agent cannot begin a turn.
pub(super) async fn send_message(ops: &Ops, asker: ToolCaller, to: String, message: String) -> Result<String> {
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
    ops.agent_message_limits.count_message(asker.agent, asker.turn, turn, ops.clock.ticks())?;
    let counted = TurnGuard { limits: ops.agent_message_limits.clone(), turn };
    let taken = Arc::new(AcceptanceListener::default());
    let sink = TurnSink::new(Some(taken.clone()));
    let send = TurnRequest {
        turn,
        message,
        key: None,
        model: None,
        resume_if_unstarted: false,
        sink,
        requester: Requester::Nobody,
    };
    let (registry, from, id) = (ops.registry.clone(), asker.agent_name, ConversationKey::main(agent.settings.id));
    let name = to.clone();
    let mut turn = chorus_runtime::spawn(async move {
        let ended = registry.ask(id, command::send(send)).await;
        drop(counted);
        if let Err(failure) = &ended {
            tracing::info!(agent = %name, %from, %failure, "a turn requested by another agent failed");
        }
        ended.map(drop)
    });
    let ended = tokio::select! {
        biased;
        () = taken.accepted.notified() => None,
        ended = &mut turn => Some(ended),
        () = asker.cancel.cancelled() => {
            return Err(Error::new(ErrorKind::Interrupted, "the turn ended before the message was accepted"));
        }
    };
    if let Some(ended) = ended {
        ended.map_err(|e| Error::internal(e.to_string()))??;
    }
    let how = taken.outcome.lock().take();
    let how = how.unwrap_or_else(|| "processed it".into());
    Ok(format!("{to} received the message and {how}; its reply is not sent back to you automatically"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(result: Result<()>) -> Option<ErrorKind> {
        result.err().map(|failure| failure.kind)
    }

    #[test]
    fn what_is_passed_on_ends() {
        let (relay, agent, now) = (AgentMessageLimits::default(), Uuid::new_v4(), Ticks(0));
        let turns: Vec<Uuid> = (0..6).map(|_| Uuid::new_v4()).collect();
        for hop in 0..3 {
            assert_eq!(kind(relay.count_message(agent, turns[hop], turns[hop + 1], now)), None, "{hop}");
        }
        assert_eq!(kind(relay.count_message(agent, turns[3], turns[4], now)), Some(ErrorKind::LimitReached));
        relay.on_turn_ended(turns[3]);
        assert_eq!(relay.0.lock().hops.len(), 2);
    }

    #[test]
    fn ten_in_a_minute_are_enough() {
        let (relay, agent, turn) = (AgentMessageLimits::default(), Uuid::new_v4(), Uuid::new_v4());
        let later = |seconds| Ticks(0).after(Duration::from_secs(seconds));
        for second in 0..10 {
            assert_eq!(kind(relay.count_message(agent, turn, Uuid::new_v4(), later(second))), None);
        }
        assert_eq!(kind(relay.count_message(agent, turn, Uuid::new_v4(), later(59))), Some(ErrorKind::LimitReached));
        assert_eq!(kind(relay.count_message(Uuid::new_v4(), turn, Uuid::new_v4(), later(59))), None, "another agent");
        assert_eq!(kind(relay.count_message(agent, turn, Uuid::new_v4(), later(60))), None);
        assert_eq!(kind(relay.count_message(agent, turn, Uuid::new_v4(), later(60))), Some(ErrorKind::LimitReached));
    }
}
