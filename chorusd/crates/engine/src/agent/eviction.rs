//! Evicts contexts without recent requests from memory. They stay live: the journal has them, and the next request
//! loads them again.

use std::sync::Arc;
use std::time::Duration;

use chorus_agent_core::context::Context;
use chorus_session::conversation::ConversationKey;
use tokio_util::sync::CancellationToken;

use super::command;
use super::registry::Registry;
use crate::lifecycle::malloc_trim;

/// How long a context must have had no request.
pub const EVICT_AFTER: Duration = Duration::from_secs(60);

/// How long after the last eviction the index of conversations is moved. By then the allocator has what was freed in one piece.
const RELOCATE_AFTER: Duration = Duration::from_secs(1);

/// Evicted contexts for which it is moved even if others are evicted all the time.
const MAX_EVICTED: usize = 4096;

/// Limits of a context that loads in about a millisecond; larger ones stay in memory.
const MAX_EVICTABLE_MESSAGES: u64 = 500;
const MAX_EVICTABLE_TOKENS: u64 = 64 << 10;

/// Whether a context may be evicted. One that refers to a session may not: its messages are not in the journal.
#[must_use]
pub fn is_evictable(context: &Context) -> bool {
    context.base_session.is_none()
        && context.totals.messages <= MAX_EVICTABLE_MESSAGES
        && context.totals.tokens() <= MAX_EVICTABLE_TOKENS
}

/// Asks the actors whose timer has fired to evict their context, until `stop`.
pub async fn run(registry: Arc<Registry>, stop: CancellationToken) {
    let mut evicted = Vec::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = registry.eviction_timers.wait_for_timer(&registry.clock) => {}
            () = tokio::time::sleep(RELOCATE_AFTER), if !evicted.is_empty() => {
                relocate(&registry, std::mem::take(&mut evicted));
                continue;
            }
        }
        let conversations = registry.eviction_timers.take_due(registry.clock.ticks());
        for (conversation, _) in &conversations {
            // If the actor is busy, it has had a request and need not be asked.
            let _ = registry.ask(*conversation, command::evict()).await;
            evicted.push(*conversation);
        }
        if !conversations.is_empty() {
            malloc_trim::schedule_trim(&registry.store);
        }
        if evicted.len() >= MAX_EVICTED {
            relocate(&registry, std::mem::take(&mut evicted));
        }
    }
}

/// Moves what stays in memory of evicted contexts.
fn relocate(registry: &Registry, evicted: Vec<ConversationKey>) {
    registry.conversations().relocate(&evicted);
    registry.relocate(&evicted);
    registry.idle_timers.relocate(evicted.len());
    registry.eviction_timers.relocate(evicted.len());
    malloc_trim::schedule_trim(&registry.store);
}
