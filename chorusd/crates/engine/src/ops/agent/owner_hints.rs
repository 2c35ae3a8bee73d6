//! The nodes that have had agents lately, so that not each request for one of them asks the database.

use std::collections::HashMap;
use std::time::Duration;

use chorus_base::error::{Elsewhere, Error};
use chorus_base::sync::Mutex;
use tokio::time::Instant;

/// Time after which the database is asked again. A hint may be wrong: the node that is asked says so.
const MAX_AGE: Duration = Duration::from_secs(2);

/// Limit of the hints.
const MAX_HINTS: usize = 50_000;

/// The nodes to which requests for agents went, by the name or id in the request.
#[derive(Debug, Default)]
pub struct OwnerHints {
    hints: Mutex<HashMap<String, (Elsewhere, Instant)>>,
}

impl OwnerHints {
    /// Returns the error that sends a request for this agent to the node that had it lately.
    pub(super) fn find(&self, agent: &str) -> Option<Error> {
        let mut hints = self.hints.lock();
        let (there, since) = hints.get(agent)?;
        if since.elapsed() > MAX_AGE {
            hints.remove(agent);
            return None;
        }
        Some(Error::elsewhere(agent, there.clone()))
    }

    /// Remembers the node that an error names.
    pub(super) fn note(&self, agent: &str, failure: &Error) {
        let Some(there) = failure.elsewhere.as_deref().filter(|there| !there.address.is_empty()) else { return };
        let mut hints = self.hints.lock();
        if hints.len() >= MAX_HINTS {
            hints.clear();
        }
        hints.insert(agent.to_owned(), (there.clone(), Instant::now()));
    }

    /// Forgets the agents of a node that cannot be reached, or that does not have one of them any more.
    pub fn forget(&self, node: &str) {
        self.hints.lock().retain(|_, (there, _)| there.node != node);
    }
}
