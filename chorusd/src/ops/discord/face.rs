//! Discord as verbs see it.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use crate::agent::directory::Entry;
use crate::failure::Result;

/// How the connection stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum State {
    /// There is no token, or the daemon has not got so far.
    #[default]
    Off,
    Connecting,
    Connected,
    /// It tries again at this time.
    Waiting {
        until: Timestamp,
        why: String,
    },
    /// It does not try again before a restart; `hint` is what a person can do.
    Stopped {
        why: String,
        hint: String,
    },
}

/// A channel that was made for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    pub channel: u64,
    pub guild: u64,
}

/// What verbs ask of Discord, where it is there.
pub trait Face: Debug + Send + Sync {
    /// Makes a channel for an agent that is about to be made, in `guild` or the only one there is. `None`: not connected, or it is
    /// open which server is meant.
    fn make_channel(&self, name: String, topic: String, guild: Option<u64>) -> BoxFuture<'_, Result<Option<Made>>>;
    /// Deletes a channel that Chorus made; nothing where it is gone already.
    fn delete_channel(&self, channel: u64) -> BoxFuture<'_, Result<()>>;
    /// An agent with a channel is there: routes lead to it from now on. `new`: it is welcomed.
    fn enrolled(&self, agent: Arc<Entry>, new: bool) -> BoxFuture<'_, Result<()>>;
}

/// How Discord stands, and what verbs ask of it.
#[derive(Debug, Default)]
pub struct Discord {
    state: Mutex<State>,
    guilds: AtomicU64,
    pub face: OnceLock<Arc<dyn Face>>,
}

impl Discord {
    #[must_use]
    pub fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_state(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// The servers that it is in.
    #[must_use]
    pub fn guilds(&self) -> u64 {
        self.guilds.load(Ordering::Relaxed)
    }

    pub fn set_guilds(&self, guilds: u64) {
        self.guilds.store(guilds, Ordering::Relaxed);
    }
}
