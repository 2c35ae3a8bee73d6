//! Requests the summaries that an earlier run of the daemon left open: a shutdown calls no model, and a crash may come
//! first.

use std::collections::HashSet;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_llm::ModelRef;
use futures_util::StreamExt as _;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::Summaries;
use super::request::RequestOutcome;

/// Maximum number of concurrent requests.
const CONCURRENT_REQUESTS: usize = 2;

/// Providers that could not be called.
type FailedProviders = Mutex<HashSet<String>>;

impl Summaries {
    /// Requests the open summaries, a few at a time. A provider that fails is not called for the others; the next start
    /// tries again.
    pub async fn backfill(self: Arc<Self>) {
        let left = match self.store.catalog.summary_queue.list().await {
            Ok(left) => left,
            Err(failure) => return tracing::warn!(%failure, "cannot find sessions without a summary"),
        };
        let failed = FailedProviders::default();
        futures_util::stream::iter(left)
            .for_each_concurrent(CONCURRENT_REQUESTS, |session| {
                let (all, failed) = (&self, &failed);
                async move {
                    if all.stop.is_cancelled() {
                        return;
                    }
                    if let Err(failure) = all.backfill_one(session, failed).await {
                        tracing::warn!(%session, %failure, "cannot update the summary of a session");
                    }
                }
            })
            .await;
    }

    async fn backfill_one(&self, session: Uuid, failed: &FailedProviders) -> Result<()> {
        let Some(row) = self.store.catalog.sessions.get(session).await? else { return Ok(()) };
        let Some(entry) = self.agents.by_id(row.header.agent_id) else {
            // The summary was to be made by its agent's model, and the agent is gone.
            return self.store.catalog.summary_queue.remove(session).await;
        };
        let settings = &entry.settings;
        let target = settings.model.as_deref().and_then(|model| self.models.resolve(model).ok());
        let Some(ModelRef { provider, .. }) = target else { return Ok(()) };
        if failed.lock().await.contains(&provider) || self.usage.check_limits(settings).await.is_err() {
            return Ok(());
        }
        let Some(under_way) = self.in_flight.begin(session) else { return Ok(()) };
        if self.store.catalog.summary_queue.get(session).await?.is_none() {
            // A save in this run was faster.
            return Ok(());
        }
        match self.request_when_free(session, settings).await {
            None => {}
            Some(RequestOutcome::Failed) => _ = failed.lock().await.insert(provider),
            Some(outcome) => self.publish(under_way, settings, outcome).await,
        }
        Ok(())
    }
}
