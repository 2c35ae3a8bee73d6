//! Summaries by the agents' own models. A save is durable first, with an extractive summary; the model's summary
//! replaces it when it is there. Summaries that a shutdown or a crash leaves open are requested at the next start.

mod backfill;
mod in_flight;
mod request;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::effect::SessionDraft;
use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_catalog::{PendingSummary, SessionRow};
use chorus_clock::Clock;
use chorus_journal::NewEvent;
use chorus_llm::{ModelRef, Models};
use chorus_proto::{EventType, SessionHeader, SummarySource, Trigger};
use chorus_redact::Redactor;
use chorus_runtime::SpawnTracked as _;
use chorus_session::summary::ModelSummary;
use chorus_store::{Store, session_files};
use serde_json::json;
use tokio::sync::{RwLock, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::in_flight::{InFlightGuard, InFlightSummaries};
use self::request::{RequestOutcome, SummaryRequest};
use super::agent_index::AgentIndex;
use super::turn_priority::TurnPriority;
use crate::traces::TraceFeed;
use crate::usage::UsageTracker;

/// Maximum number of concurrent requests to one provider. When many contexts expire together, the other requests wait,
/// and hold no transcript while they do. A slow provider does not delay the requests to another.
const MAX_CALLS_PER_PROVIDER: usize = 4;

/// A conversation with fewer characters needs no summary.
const MIN_CHARS: u64 = 40;

/// The services that summaries use.
#[derive(Debug)]
pub struct SummaryServices {
    pub store: Arc<Store>,
    pub models: Arc<Models>,
    pub usage: Arc<UsageTracker>,
    pub traces: Arc<TraceFeed>,
    pub redactor: Arc<Redactor>,
    pub agents: Arc<AgentIndex>,
    pub clock: Clock,
    pub home: PathBuf,
    /// The same lock as in the `Ops` of `crate::ops`.
    pub sessions_lock: Arc<RwLock<()>>,
    pub tasks: TaskTracker,
}

/// Requests summaries from models, and knows which requests are in flight.
pub struct Summaries {
    store: Arc<Store>,
    pub(super) models: Arc<Models>,
    pub(super) usage: Arc<UsageTracker>,
    pub(super) traces: Arc<TraceFeed>,
    redactor: Arc<Redactor>,
    clock: Clock,
    agents: Arc<AgentIndex>,
    home: PathBuf,
    /// The same lock as in the `Ops` of `crate::ops`.
    sessions_lock: Arc<RwLock<()>>,
    tasks: TaskTracker,
    /// Permits of concurrent requests, by provider.
    provider_permits: Mutex<HashMap<String, Arc<Semaphore>>>,
    stop: CancellationToken,
    in_flight: Arc<InFlightSummaries>,
    /// Delays background requests while turns call the same provider.
    pub(super) turn_priority: TurnPriority,
}

impl std::fmt::Debug for Summaries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Summaries")
    }
}

impl Summaries {
    #[must_use]
    pub fn new(services: SummaryServices) -> Arc<Self> {
        let SummaryServices { store, models, usage, traces, redactor, agents, clock, home, sessions_lock, tasks } =
            services;
        Arc::new(Self {
            store,
            models,
            usage,
            traces,
            redactor,
            clock,
            agents,
            home,
            sessions_lock,
            tasks,
            provider_permits: Mutex::default(),
            stop: CancellationToken::new(),
            in_flight: Arc::default(),
            turn_priority: TurnPriority::default(),
        })
    }

    /// Stops calling models. Open summaries are left to the next start.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Returns the token that is cancelled when background model calls must stop.
    pub(super) fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Returns the summary to request for a session of `draft`, or `None` if the agent has no model or a usage limit
    /// forbids the call. At shutdown the limits are not checked, because the next start makes the call.
    pub(super) async fn requested_summary(&self, draft: &SessionDraft) -> Option<PendingSummary> {
        let model = draft.settings.model.as_deref()?;
        if draft.totals.chars < MIN_CHARS || self.models.resolve(model).is_err() {
            return None;
        }
        if draft.trigger != Trigger::Shutdown
            && let Err(failure) = self.usage.check_limits(&draft.settings).await
        {
            tracing::info!(agent = %draft.settings.name, %failure, "cannot ask a model for a summary");
            return None;
        }
        Some(PendingSummary { described: draft.description.is_some() })
    }

    /// Requests the summary of a session that was just saved. Whatever the outcome, an event `summary.ready` follows.
    pub(super) fn start(self: &Arc<Self>, session: Uuid, settings: Arc<AgentSettings>) {
        if self.stop.is_cancelled() {
            return;
        }
        let Some(under_way) = self.in_flight.begin(session) else { return };
        let all = self.clone();
        self.tasks.spawn_tracked(async move {
            if let Some(outcome) = all.request_when_free(session, &settings).await {
                all.publish(under_way, &settings, outcome).await;
            }
        });
    }

    /// Whether a summary of this session is in flight.
    #[must_use]
    pub fn is_in_flight(&self, session: Uuid) -> bool {
        self.in_flight.contains(session)
    }

    /// Waits until the summary of this session is no longer in flight, at most for `most`. Returns whether it was in
    /// flight.
    pub async fn wait_until_done(&self, session: Uuid, most: Duration) -> bool {
        self.in_flight.wait_until_done(session, self.clock.ticks().after(most)).await
    }

    /// Ends waits whose time is up, until the daemon stops.
    pub async fn run_timers(self: Arc<Self>) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.in_flight.run_timers(&self.clock) => {}
        }
    }

    /// Makes the request when a permit is free and no turn calls the provider. `None`: the daemon stops.
    async fn request_when_free(&self, session: Uuid, settings: &AgentSettings) -> Option<RequestOutcome> {
        let calls = self.permits_of(settings);
        let _turn = tokio::select! {
            biased;
            () = self.stop.cancelled() => return None,
            turn = calls.acquire() => turn,
        };
        let own =
            self.target(settings).filter(|target| self.models.is_self_hosted(target)).map(|target| target.provider);
        let ask = |stop| self.request_now(session, settings, stop);
        self.turn_priority.run_between_turns(own.as_deref(), &self.stop, ask).await
    }

    /// Makes the request. `None`: it was stopped.
    async fn request_now(
        &self,
        session: Uuid,
        settings: &AgentSettings,
        stop: CancellationToken,
    ) -> Option<RequestOutcome> {
        let asked = match self.load_input(session).await {
            Ok(Some(source)) => {
                SummaryRequest { summaries: self, settings, source: Box::new(source), stop }.run().await
            }
            Ok(None) => RequestOutcome::Skipped,
            Err(failure) => {
                tracing::warn!(agent = %settings.name, %session, %failure, "cannot summarize a session");
                RequestOutcome::Skipped
            }
        };
        (!matches!(asked, RequestOutcome::Stopped)).then_some(asked)
    }

    fn target(&self, settings: &AgentSettings) -> Option<ModelRef> {
        settings.model.as_deref().and_then(|model| self.models.resolve(model).ok())
    }

    /// Returns the permits of the provider of the agent's model.
    fn permits_of(&self, settings: &AgentSettings) -> Arc<Semaphore> {
        let provider = self.target(settings).map(|target| target.provider).unwrap_or_default();
        let mut calls = self.provider_permits.lock();
        calls.entry(provider).or_insert_with(|| Arc::new(Semaphore::new(MAX_CALLS_PER_PROVIDER))).clone()
    }

    /// Loads the session to summarise. `None` if it is gone or was changed by hand.
    async fn load_input(&self, session: Uuid) -> Result<Option<SummaryInput>> {
        // The lock keeps the file in place until it is read.
        let _stays = self.sessions_lock.read().await;
        let Some(wanted) = self.store.catalog.summary_queue.get(session).await? else { return Ok(None) };
        let Some(row) = self.store.catalog.sessions.get(session).await? else { return Ok(None) };
        let dir = self.agent_dir(&row).await?;
        let row = self.store.with_local_file(row, &dir).await?;
        let path = session_files::path_of(&dir, &row.header.session_id);
        let found = chorus_runtime::spawn_blocking(move || session_files::read(&path));
        let found = found.await.map_err(|e| Error::internal(e.to_string()))??;
        let known = found.stamp == row.file_stamp;
        Ok(found.file.ok().filter(|_| known).map(|file| SummaryInput {
            wanted,
            header: row.header,
            messages: file.messages,
        }))
    }

    /// Stores the summary if there is one, and emits the event that it is ready.
    async fn publish(&self, under_way: InFlightGuard, settings: &AgentSettings, outcome: RequestOutcome) {
        let session = under_way.session;
        // The lock keeps the session from being purged before the event is emitted; a later purge removes the event
        // too.
        let _stays = self.sessions_lock.read().await;
        if let RequestOutcome::Answered { answer, source } = outcome
            && let Err(failure) = self.store_summary(session, answer, source).await
        {
            tracing::warn!(agent = %settings.name, %session, %failure, "cannot store a summary");
        }
        if let Err(failure) = self.store.catalog.summary_queue.remove(session).await {
            tracing::warn!(%session, %failure, "cannot mark a summary as done; it may be requested again");
        }
        let header = self.store.catalog.sessions.get(session).await.ok().flatten().map(|row| row.header);
        // From here on requests find the summary in the catalog; those who waited before receive the event.
        drop(under_way);
        let (summary, source, conversation) = header.map_or((None, SummarySource::None, None), |header| {
            (header.summary, header.summary_source, header.conversation)
        });
        let data = json!({"id": session, "summary": summary, "source": source});
        let (at, agent) = (self.clock.now(), Some(settings.name.clone()));
        let conversation = conversation.map(|conversation| conversation.name);
        let event = NewEvent { at, kind: EventType::SummaryReady, agent, conversation, data };
        drop(self.store.journal.emit(vec![event]));
    }

    async fn store_summary(&self, session: Uuid, answer: ModelSummary, source: Box<SummaryInput>) -> Result<()> {
        let Some(row) = self.store.catalog.sessions.get(session).await? else { return Ok(()) };
        let dir = self.agent_dir(&row).await?;
        let SummaryInput { wanted, header: before, .. } = *source;
        let described = wanted.described;
        let was = (before.summary.clone(), before.summary_source);
        let may = move |now: &SessionHeader| (&now.summary, now.summary_source) == (&was.0, was.1);
        let change = move |header: &mut SessionHeader| {
            if !described && header.description == before.description && answer.title.is_some() {
                header.description.clone_from(&answer.title);
            }
            header.summary = Some(answer.summary.clone());
            header.summary_source = SummarySource::Llm;
        };
        let kept = self.store.escalate_fatal(self.store.update_session_header_if(session, dir, may, change).await)?;
        if kept.is_none() {
            tracing::info!(%session, "discarding a summary: its session was edited");
        }
        Ok(())
    }

    /// Returns the directory of the agent that has the session, even if the agent is destroyed.
    async fn agent_dir(&self, row: &SessionRow) -> Result<PathBuf> {
        let agent = row.header.agent_id;
        if let Some(entry) = self.agents.by_id(agent) {
            return Ok(entry.settings.dir.clone());
        }
        let row = self.store.catalog.agents.list_by_id(vec![agent]).await?.pop();
        Ok(row.map(|row| self.home.join(row.dir)).unwrap_or_default())
    }
}

/// A session to summarise.
#[derive(Debug)]
pub struct SummaryInput {
    pub wanted: PendingSummary,
    /// The header at that time.
    pub header: SessionHeader,
    pub messages: Vec<chorus_session::stored_message::StoredMessage>,
}
