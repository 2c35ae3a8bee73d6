//! Nodes whose process has ended without a word.

use chorus_base::error::Elsewhere;
use chorus_journal::Owner;

use super::claims::AgentClaims;

impl AgentClaims {
    /// Lets the agents of a node be claimed whose address refuses connections, if its heartbeat is late, too. Returns whether this has
    /// changed anything.
    pub async fn presume_dead(&self, there: Elsewhere) -> bool {
        let Some(ownership) = &self.store.ownership else { return false };
        let Elsewhere { node, address } = there;
        match ownership.presume_dead(Owner { node: node.clone(), address }).await {
            Ok(true) => {
                tracing::warn!(node, "a node has ended without a word: its agents may be taken over");
                true
            }
            Ok(false) => false,
            Err(failure) => {
                tracing::info!(node, %failure, "cannot find out whether a node has ended");
                false
            }
        }
    }
}
