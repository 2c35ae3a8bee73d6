//! The operation `events.subscribe`.

use std::collections::VecDeque;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_journal::Journal;
use chorus_proto::methods::events::{SubscribeParams, SubscribeResult};
use chorus_proto::{Event, EventType};
use chorus_store::Store;
use tokio::sync::broadcast;

use super::DEFAULT_PAGE;

/// The event subscription of a connection: first stored events, then live ones.
#[derive(Debug)]
pub struct Subscription {
    live: broadcast::Receiver<Arc<Event>>,
    /// The events of other nodes; `None` without a cluster.
    elsewhere: Option<broadcast::Receiver<Arc<Event>>>,
    /// Number of the last event that was delivered.
    last_seq: u64,
    /// Stored events up to this number are replayed.
    replay_until: u64,
    replayed: VecDeque<Event>,
}

/// An item that a subscription delivers.
#[derive(Debug)]
pub enum SubscriptionItem {
    Event(Arc<Event>),
    /// This many events were missed.
    Lagged(u64),
}

/// Begins a subscription to the events of this daemon.
pub async fn subscribe(journal: &Arc<dyn Journal>, params: SubscribeParams) -> Result<(SubscribeResult, Subscription)> {
    // Subscribes before it reads the last number, so that no event is missed in between.
    let live = journal.subscribe();
    let seq = journal.last_event().await?;
    let last = params.after.unwrap_or(seq).min(seq);
    let subscription =
        Subscription { live, elsewhere: None, last_seq: last, replay_until: seq, replayed: VecDeque::new() };
    Ok((SubscribeResult { seq }, subscription))
}

/// As [`subscribe`], and to the events of the other nodes of a cluster from now on.
pub async fn subscribe_to_all(store: &Store, params: SubscribeParams) -> Result<(SubscribeResult, Subscription)> {
    let elsewhere = match &store.ownership {
        Some(ownership) => Some(ownership.subscribe_elsewhere().await?),
        None => None,
    };
    let (result, subscription) = subscribe(&store.journal, params).await?;
    Ok((result, Subscription { elsewhere, ..subscription }))
}

impl Subscription {
    /// Returns the next item; `None` when the daemon stops. May be dropped and called again.
    pub async fn next(&mut self, journal: &Arc<dyn Journal>) -> Option<SubscriptionItem> {
        loop {
            if let Some(event) = self.replayed.pop_front() {
                self.last_seq = event.seq;
                return Some(SubscriptionItem::Event(Arc::new(event)));
            }
            if self.last_seq < self.replay_until {
                let Ok((events, missed)) = journal.events_after(self.last_seq, DEFAULT_PAGE).await else {
                    return None;
                };
                if events.is_empty() {
                    self.last_seq = self.replay_until;
                }
                self.replayed.extend(events);
                if missed > 0 {
                    self.last_seq += missed;
                    return Some(SubscriptionItem::Lagged(missed));
                }
                continue;
            }
            let received = tokio::select! {
                biased;
                received = self.live.recv() => received,
                Some(received) = receive(&mut self.elsewhere) => received,
            };
            match received {
                // Deltas have no number of their own.
                Ok(event) if event.node.is_some() => {
                    let event = Event { seq: self.last_seq, ..(*event).clone() };
                    return Some(SubscriptionItem::Event(Arc::new(event)));
                }
                Ok(event) if event.kind == EventType::TurnDelta => return Some(SubscriptionItem::Event(event)),
                Ok(event) if event.seq <= self.last_seq => {}
                Ok(event) => {
                    self.last_seq = event.seq;
                    return Some(SubscriptionItem::Event(event));
                }
                Err(broadcast::error::RecvError::Lagged(missed)) => return Some(SubscriptionItem::Lagged(missed)),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

/// Waits for an event of another node; never returns if there is none to come.
async fn receive(
    elsewhere: &mut Option<broadcast::Receiver<Arc<Event>>>,
) -> Option<Result<Arc<Event>, broadcast::error::RecvError>> {
    match elsewhere {
        Some(events) => Some(events.recv().await),
        None => std::future::pending().await,
    }
}
