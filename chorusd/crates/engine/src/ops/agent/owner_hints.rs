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

/// The node that the database named at a claim that was refused.
#[derive(Debug)]
struct Hint {
    /// Name of the agent, for people.
    name: String,
    there: Elsewhere,
    since: Instant,
}

/// The nodes to which requests for agents went.
#[derive(Debug, Default)]
pub struct OwnerHints {
    /// By the name or id in the request.
    hints: Mutex<HashMap<String, Hint>>,
}

impl OwnerHints {
    /// Returns the error that sends a request for this agent to the node that had it lately.
    pub(super) fn find(&self, agent: &str) -> Option<Error> {
        let mut hints = self.hints.lock();
        let hint = hints.get(agent)?;
        if hint.since.elapsed() > MAX_AGE {
            hints.remove(agent);
            return None;
        }
        Some(Error::elsewhere(&hint.name, hint.there.clone()))
    }

    /// Remembers the node that an error names.
    pub(super) fn note(&self, agent: &str, name: &str, failure: &Error) {
        let Some(there) = failure.elsewhere.as_deref().filter(|there| !there.address.is_empty()) else { return };
        let mut hints = self.hints.lock();
        if hints.len() >= MAX_HINTS {
            hints.clear();
        }
        let hint = Hint { name: name.to_owned(), there: there.clone(), since: Instant::now() };
        hints.insert(agent.to_owned(), hint);
    }

    /// Forgets the node of an agent that this one has now.
    pub(super) fn remove(&self, agent: &str) {
        self.hints.lock().remove(agent);
    }

    /// Forgets the agents of a node that cannot be reached, or that does not have one of them any more.
    pub fn forget(&self, node: &str) {
        self.hints.lock().retain(|_, hint| hint.there.node != node);
    }
}
