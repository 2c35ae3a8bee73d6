//! Publishes stored events to subscribers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chorus_proto::Event;
use tokio::sync::broadcast;

use crate::NewEvent;

/// Capacity of the event channel; a subscriber that lags further behind misses events.
const EVENT_CHANNEL_CAPACITY: usize = 4096;

/// Publishes events in the order of their commits. Slow subscribers miss the oldest.
#[derive(Debug, Clone)]
pub struct EventPublisher {
    events: broadcast::Sender<Arc<Event>>,
    /// Number of the last published event.
    last_published: Arc<AtomicU64>,
}

impl EventPublisher {
    /// Creates one whose last event so far has the number `last`.
    #[must_use]
    pub fn new(last: u64) -> Self {
        Self { events: broadcast::Sender::new(EVENT_CHANNEL_CAPACITY), last_published: Arc::new(AtomicU64::new(last)) }
    }

    /// Subscribes to events from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.events.subscribe()
    }

    /// Returns the number of the last published event.
    #[must_use]
    pub fn last_published(&self) -> u64 {
        self.last_published.load(Ordering::Acquire)
    }

    /// Publishes events that are stored.
    pub fn publish(&self, stored: impl IntoIterator<Item = Arc<Event>>) {
        for event in stored {
            self.last_published.store(event.seq, Ordering::Release);
            let _ = self.events.send(event);
        }
    }

    /// Publishes an event that is not stored. It has the number of the last stored event. `new` is not called if nobody
    /// subscribes.
    pub fn publish_transient(&self, new: impl FnOnce() -> NewEvent) {
        if self.events.receiver_count() > 0 {
            let seq = self.last_published.load(Ordering::Acquire);
            let NewEvent { at, kind, agent, conversation, data } = new();
            let _ = self.events.send(Arc::new(Event { seq, time: at, kind, agent, conversation, data, node: None }));
        }
    }
}
