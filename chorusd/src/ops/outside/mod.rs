//! What tools ask of the daemon: verbs that no person asks for.

mod agents;
mod relay;
mod search;
mod self_edit;

use futures_util::future::{BoxFuture, FutureExt as _};
use uuid::Uuid;

pub use relay::Relay;

use super::Ops;
use crate::failure::Result;
use crate::tools::{Asker, Outside, SelfEdit};

impl Outside for Ops {
    fn list_agents(&self, asker: Uuid) -> BoxFuture<'_, String> {
        agents::list(self, asker).boxed()
    }

    fn self_edit(&self, asker: Asker, edit: SelfEdit) -> BoxFuture<'_, Result<()>> {
        self_edit::self_edit(self, asker, edit).boxed()
    }

    fn search_sessions(&self, asker: Asker, query: String) -> BoxFuture<'_, Result<String>> {
        search::search(self, asker, query).boxed()
    }

    fn send_to_agent(&self, asker: Asker, agent: String, message: String) -> BoxFuture<'_, Result<String>> {
        relay::send(self, asker, agent, message).boxed()
    }
}
