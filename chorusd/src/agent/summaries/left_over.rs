//! What an earlier run of the daemon has left to be summarised: a stop calls no model, and a crash may come first.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::Summaries;
use super::ask::Outcome;
use crate::failure::Result;
use crate::llm::Target;

/// Models that are asked about it at once.
const AT_ONCE: usize = 2;

/// Providers that could not be called.
type Failed = Mutex<HashSet<String>>;

impl Summaries {
    /// Fills in what an earlier run of the daemon has left, a few at a time. A provider that fails is not asked for the rest:
    /// another start tries again.
    pub async fn fill_in(self: Arc<Self>) {
        let left = match self.store.catalog.summaries_wanted().await {
            Ok(left) => left,
            Err(failure) => return tracing::warn!(%failure, "cannot tell which sessions lack a summary"),
        };
        let failed = Failed::default();
        futures_util::stream::iter(left)
            .for_each_concurrent(AT_ONCE, |session| {
                let (all, failed) = (&self, &failed);
                async move {
                    if all.stop.is_cancelled() {
                        return;
                    }
                    if let Err(failure) = all.fill_in_one(session, failed).await {
                        tracing::warn!(%session, %failure, "a session keeps the summary that it has");
                    }
                }
            })
            .await;
    }

    async fn fill_in_one(&self, session: Uuid, failed: &Failed) -> Result<()> {
        let Some(row) = self.store.catalog.session(session).await? else { return Ok(()) };
        let Some(entry) = self.directory.by_id(row.header.agent_id) else {
            // It went with its agent's model.
            return self.store.catalog.summary_done(session).await;
        };
        let facts = &entry.facts;
        let target = facts.model.as_deref().and_then(|model| self.models.resolve(model).ok());
        let Some(Target { provider, .. }) = target else { return Ok(()) };
        if failed.lock().await.contains(&provider) || self.usage.may_call(facts).await.is_err() {
            return Ok(());
        }
        let Some(under_way) = self.under_way.enter(session) else { return Ok(()) };
        if self.store.catalog.summary_wanted(session).await?.is_none() {
            // A save of this run was faster.
            return Ok(());
        }
        match self.ask(session, facts).await {
            None => {}
            Some(Outcome::Failed) => _ = failed.lock().await.insert(provider),
            Some(outcome) => self.finish(under_way, facts, outcome).await,
        }
        Ok(())
    }
}
