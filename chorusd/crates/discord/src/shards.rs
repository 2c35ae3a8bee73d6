//! The shards of the gateway: connections among which Discord divides the servers. Direct messages belong to the first.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use chorus_base::sync::Mutex;
use serenity::model::event::ReadyEvent;
use serenity::model::id::GuildId;
use tokio_util::sync::CancellationToken;

use crate::gateway::IdentifyTurns;

/// The shards of this bot, and those that this process has.
#[derive(Debug)]
pub(crate) struct ShardSet {
    count: AtomicU32,
    terms: Mutex<HashMap<u32, CancellationToken>>,
    pub identify_turns: IdentifyTurns,
}

impl Default for ShardSet {
    fn default() -> Self {
        Self { count: AtomicU32::new(1), terms: Mutex::default(), identify_turns: IdentifyTurns::default() }
    }
}

impl ShardSet {
    /// Returns the number of shards.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// Sets the number of shards, before any of them is connected.
    pub(crate) fn set_count(&self, count: u32) {
        self.count.store(count.max(1), Ordering::Relaxed);
    }

    /// Returns the shard that a guild belongs to; that of direct messages without one.
    pub(crate) fn of(&self, guild: Option<GuildId>) -> u32 {
        guild.map_or(0, |guild| shard_of(guild, self.count()))
    }

    /// Begins a time in which this process has a shard. The token, which `stop` cancels, ends it.
    pub(crate) fn begin_term(&self, shard: u32, stop: &CancellationToken) -> CancellationToken {
        let term = stop.child_token();
        self.terms.lock().insert(shard, term.clone());
        term
    }

    /// Returns the token that is cancelled when this process has a shard no more.
    pub(crate) fn term(&self, shard: u32) -> CancellationToken {
        self.terms.lock().get(&shard).cloned().unwrap_or_else(|| {
            let never = CancellationToken::new();
            never.cancel();
            never
        })
    }
}

/// Returns the shard of a guild: <https://docs.discord.com/developers/events/gateway#sharding>.
pub(crate) fn shard_of(guild: GuildId, count: u32) -> u32 {
    u32::try_from((guild.get() >> 22) % u64::from(count.max(1))).unwrap_or_default()
}

/// The shard that a READY is about, and the number of shards.
pub(crate) fn shard_of_ready(event: &ReadyEvent) -> (u32, u32) {
    event.ready.shard.map_or((0, 1), |shard| (shard.id.0, shard.total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_divided_by_the_time_of_their_id() {
        let shards = ShardSet::default();
        let guild = GuildId::new(81_384_788_765_712_384);
        assert_eq!((shards.of(Some(guild)), shards.of(None)), (0, 0));
        shards.set_count(17);
        assert_eq!((shards.of(Some(guild)), shards.of(None)), (7, 0));
    }
}
