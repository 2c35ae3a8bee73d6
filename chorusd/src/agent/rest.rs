//! A context that nobody has touched for a while leaves memory. It is live all the same: the journal has it, and the next
//! request reads it back.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::event::Verb;
use super::registry::Registry;
use crate::memory;

/// How long nobody has touched it then.
pub const UNTOUCHED: Duration = Duration::from_secs(60);

/// Contexts that are read back in about a millisecond; larger ones stay.
const MESSAGES: u64 = 500;
const TOKENS: u64 = 64 << 10;

/// Whether it may leave memory. One that began with a session stays: what it was read from is not the journal's.
#[must_use]
pub fn may(context: &Context) -> bool {
    context.base_session.is_none() && context.totals.messages <= MESSAGES && context.totals.tokens() <= TOKENS
}

/// Asks the actors to rest whose time has come, until `stop`.
pub async fn run(registry: Arc<Registry>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = registry.untouched.wait(&registry.clock) => {}
        }
        let agents = registry.untouched.ring(registry.clock.ticks());
        for (agent, _) in &agents {
            // One that is busy is touched.
            let _ = registry.ask(*agent, Verb::Rest).await;
        }
        if !agents.is_empty() {
            memory::give_back(&registry.store);
        }
    }
}
