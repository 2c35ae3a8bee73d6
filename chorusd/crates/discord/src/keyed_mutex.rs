//! A mutex for each guild, so that a slow request for one guild does not block the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serenity::model::id::GuildId;

/// A map from guild to a mutex around a value of `T`.
#[derive(Debug)]
pub(crate) struct KeyedMutex<T>(Mutex<HashMap<GuildId, Arc<tokio::sync::Mutex<T>>>>);

impl<T> Default for KeyedMutex<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Default> KeyedMutex<T> {
    /// Returns the mutex of `guild`, which is created on first use.
    #[must_use]
    pub(crate) fn get(&self, guild: GuildId) -> Arc<tokio::sync::Mutex<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(guild).or_default().clone()
    }
}
