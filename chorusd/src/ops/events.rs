//! `events.*`.

use std::sync::Arc;

use chorus_proto::Event;
use chorus_proto::methods::events::{ListParams, ListResult, SubscribeParams, SubscribeResult};
use tokio::sync::broadcast;

use super::Ops;
use crate::failure::{Failure, Result};

/// Events a page unless said otherwise.
const PAGE: u64 = 1_000;

/// Most events a page.
const MAX_PAGE: u64 = 10_000;

/// Events that are kept, oldest first.
///
/// # Errors
/// `invalid_params`, or a database that cannot be read.
pub async fn list(ops: &Ops, params: ListParams) -> Result<ListResult> {
    let limit = params.limit.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Failure::invalid(format!("`limit` is 1 to {MAX_PAGE}")));
    }
    let (events, lagged) = ops.store.journal.events_after(params.after.unwrap_or(0), limit).await?;
    let next = events.last().map(|event| event.seq).filter(|_| events.len() as u64 == limit);
    // Whoever starts at the beginning has not missed what was before it.
    let lagged = if params.after.is_none() { 0 } else { lagged };
    Ok(ListResult { events, lagged, next })
}

/// What a connection listens to: first what is kept, then what happens.
#[derive(Debug)]
pub struct Subscription {
    live: broadcast::Receiver<Arc<Event>>,
    /// Number of the last event that was given out.
    last: u64,
    /// Events that are kept and still to be given out: up to this number.
    replay_until: u64,
    replayed: std::collections::VecDeque<Event>,
}

/// What a subscription gives out.
#[derive(Debug)]
pub enum Heard {
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
    let live = ops.store.journal.observe();
    let seq = ops.store.journal.last_event().await?;
    let last = params.after.unwrap_or(seq).min(seq);
    let subscription = Subscription { live, last, replay_until: seq, replayed: std::collections::VecDeque::new() };
    Ok((SubscribeResult { seq }, subscription))
}

impl Subscription {
    /// The next thing to hear; `None` when the daemon is going down. May be dropped and called again.
    pub async fn next(&mut self, ops: &Ops) -> Option<Heard> {
        loop {
            if let Some(event) = self.replayed.pop_front() {
                self.last = event.seq;
                return Some(Heard::Event(Arc::new(event)));
            }
            if self.last < self.replay_until {
                let Ok((events, missed)) = ops.store.journal.events_after(self.last, PAGE).await else { return None };
                if events.is_empty() {
                    self.last = self.replay_until;
                }
                self.replayed.extend(events);
                if missed > 0 {
                    self.last += missed;
                    return Some(Heard::Lagged(missed));
                }
                continue;
            }
            match self.live.recv().await {
                Ok(event) if event.seq <= self.last => {}
                Ok(event) => {
                    self.last = event.seq;
                    return Some(Heard::Event(event));
                }
                Err(broadcast::error::RecvError::Lagged(missed)) => return Some(Heard::Lagged(missed)),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
