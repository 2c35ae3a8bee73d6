//! `events.subscribe`.

use std::collections::VecDeque;
use std::sync::Arc;

use chorus_proto::methods::events::{SubscribeParams, SubscribeResult};
use chorus_proto::{Event, EventType};
use tokio::sync::broadcast;

use super::DEFAULT_PAGE;
use crate::error::Result;
use crate::ops::Ops;

/// What a connection listens to: first what is kept, then what happens.
#[derive(Debug)]
pub struct Subscription {
    live: broadcast::Receiver<Arc<Event>>,
    /// Number of the last event that was given out.
    last_seq: u64,
    /// Events that are kept and still to be given out: up to this number.
    replay_until: u64,
    replayed: VecDeque<Event>,
}

/// What a subscription gives out.
#[derive(Debug)]
pub enum SubscriptionItem {
    Event(Arc<Event>),
    /// So many events are gone.
    Lagged(u64),
}

/// Begins a subscription.
///
/// # Errors
/// A database that cannot be read.
pub async fn subscribe(ops: &Ops, params: SubscribeParams) -> Result<(SubscribeResult, Subscription)> {
    // Listening begins before looking: nothing can fall between the two.
    let live = ops.store.journal.subscribe();
    let seq = ops.store.journal.last_event().await?;
    let last = params.after.unwrap_or(seq).min(seq);
    let subscription = Subscription { live, last_seq: last, replay_until: seq, replayed: VecDeque::new() };
    Ok((SubscribeResult { seq }, subscription))
}

impl Subscription {
    /// The next thing to hear; `None` when the daemon is going down. May be dropped and called again.
    pub async fn next(&mut self, ops: &Ops) -> Option<SubscriptionItem> {
        loop {
            if let Some(event) = self.replayed.pop_front() {
                self.last_seq = event.seq;
                return Some(SubscriptionItem::Event(Arc::new(event)));
            }
            if self.last_seq < self.replay_until {
                let Ok((events, missed)) = ops.store.journal.events_after(self.last_seq, DEFAULT_PAGE).await else {
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
            match self.live.recv().await {
                // It has no number of its own.
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
