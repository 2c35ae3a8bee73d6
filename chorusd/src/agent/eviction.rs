//! A context that nobody has touched for a while leaves memory. It is live all the same: the journal has it, and the next
//! request reads it back.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::event::AgentCommand;
use super::registry::Registry;
use crate::malloc_trim;

/// How long nobody has touched it then.
pub const EVICT_AFTER: Duration = Duration::from_secs(60);

/// Contexts that are read back in about a millisecond; larger ones stay.
const MAX_EVICTABLE_MESSAGES: u64 = 500;
const MAX_EVICTABLE_TOKENS: u64 = 64 << 10;

/// Whether it may leave memory. One that began with a session stays: what it was read from is not the journal's.
#[must_use]
pub fn is_evictable(context: &Context) -> bool {
    context.base_session.is_none()
        && context.totals.messages <= MAX_EVICTABLE_MESSAGES
        && context.totals.tokens() <= MAX_EVICTABLE_TOKENS
}

/// Asks the actors to rest whose time has come, until `stop`.
pub async fn run(registry: Arc<Registry>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = registry.eviction_timers.wait_for_timer(&registry.clock) => {}
        }
        let agents = registry.eviction_timers.take_due(registry.clock.ticks());
        for (agent, _) in &agents {
            // One that is busy is touched.
            let _ = registry.ask(*agent, AgentCommand::Evict).await;
        }
        if !agents.is_empty() {
            malloc_trim::schedule_trim(&registry.store);
        }
    }
}
