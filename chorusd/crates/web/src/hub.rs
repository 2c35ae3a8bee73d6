//! The changes that open pages are notified of: one subscription to the daemon's events for all of them.

use std::sync::Arc;

use chorus_base::sync::Mutex;
use chorus_daemon_client::{EventFeed, follow_events};
use chorus_proto::event::Event;
use chorus_proto::paths::InstancePaths;
use tokio::sync::{broadcast, mpsc};

/// The changes that a page may be behind before it only learns that it missed some.
const MAX_BEHIND: usize = 512;
/// The limit on events that are not handled yet.
const MAX_PENDING: usize = 256;

/// A change.
#[derive(Debug)]
pub(crate) enum Change {
    Event(Box<Event>),
    /// Something may have changed that is not known.
    Missed,
    /// The daemon is back, or away.
    Daemon {
        is_connected: bool,
    },
}

#[derive(Debug, Default)]
struct State {
    revision: u64,
    is_connected: bool,
}

/// The changes since the start, numbered.
#[derive(Debug)]
pub(crate) struct Hub {
    state: Mutex<State>,
    sender: broadcast::Sender<Arc<(u64, Change)>>,
}

/// What a page that opens a stream gets.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) revision: u64,
    pub(crate) is_connected: bool,
    pub(crate) changes: broadcast::Receiver<Arc<(u64, Change)>>,
}

impl Hub {
    pub(crate) fn new() -> Arc<Self> {
        let state = State { revision: 0, is_connected: true };
        Arc::new(Self { state: Mutex::new(state), sender: broadcast::channel(MAX_BEHIND).0 })
    }

    /// Follows the daemon's events until the process ends.
    pub(crate) async fn run(self: Arc<Self>, places: Arc<InstancePaths>) {
        let (sender, mut receiver) = mpsc::channel(MAX_PENDING);
        let follower = chorus_runtime::spawn(async move { follow_events(&places, &sender, |feed| feed).await });
        while let Some(feed) = receiver.recv().await {
            match feed {
                EventFeed::Connected => {
                    self.publish(Change::Daemon { is_connected: true });
                    self.publish(Change::Missed);
                }
                EventFeed::Disconnected => self.publish(Change::Daemon { is_connected: false }),
                EventFeed::Lagged => self.publish(Change::Missed),
                EventFeed::Event(event) => self.publish(Change::Event(event)),
            }
        }
        follower.abort();
    }

    fn publish(&self, change: Change) {
        let mut state = self.state.lock();
        if let Change::Daemon { is_connected } = change {
            // Each attempt to connect fails.
            if state.is_connected == is_connected && state.revision > 0 {
                return;
            }
            state.is_connected = is_connected;
        }
        state.revision += 1;
        // Nobody may listen.
        let _ = self.sender.send(Arc::new((state.revision, change)));
    }

    /// Returns the number of the newest change.
    pub(crate) fn revision(&self) -> u64 {
        self.state.lock().revision
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        let state = self.state.lock();
        Subscription { revision: state.revision, is_connected: state.is_connected, changes: self.sender.subscribe() }
    }
}
