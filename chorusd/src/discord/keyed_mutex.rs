//! A lock for each server: what one of them holds up holds up no other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serenity::model::id::GuildId;

/// Something of each server, for one at a time.
#[derive(Debug)]
pub struct KeyedMutex<T>(Mutex<HashMap<GuildId, Arc<tokio::sync::Mutex<T>>>>);

impl<T> Default for KeyedMutex<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Default> KeyedMutex<T> {
    /// That of one server.
    #[must_use]
    pub fn get(&self, guild: GuildId) -> Arc<tokio::sync::Mutex<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(guild).or_default().clone()
    }
}
