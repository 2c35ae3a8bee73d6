//! Summaries by the agents' own models. A save is durable first, with a summary in the conversation's own words; the model's takes
//! its place when it is there. What a stop or a crash leaves to be summarised, the next start does.

mod backfill;
mod in_flight;
mod request;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chorus_proto::{EventType, SessionHeader, SummarySource, Trigger};
use serde_json::json;
use tokio::sync::{RwLock, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::in_flight::{InFlightGuard, InFlightSummaries};
use self::request::{RequestOutcome, SummaryRequest};
use super::AgentSettings;
use super::agent_index::AgentIndex;
use super::effect::SessionDraft;
use super::turn_priority::TurnPriority;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::llm::{ModelRef, Models};
use crate::store::catalog::{PendingSummary, SessionRow};
use crate::store::journal::NewEvent;
use crate::store::{Store, session_files};
use crate::summary::ModelSummary;
use crate::usage::UsageTracker;

/// Summaries that one provider is asked for at once: whatever falls idle together, the others wait, and hold no transcript while
/// they do. One that answers slowly keeps those of another from nothing.
const MAX_CALLS_PER_PROVIDER: usize = 4;

/// With fewer characters a conversation is its own summary: none is shorter.
const MIN_CHARS: u64 = 40;

/// What asks models for summaries, and knows which are on their way.
pub struct Summaries {
    store: Arc<Store>,
    pub(super) models: Arc<Models>,
    pub(super) usage: Arc<UsageTracker>,
    clock: Clock,
    agents: Arc<AgentIndex>,
    home: PathBuf,
    /// As in [`crate::ops::Ops`].
    sessions_lock: Arc<RwLock<()>>,
    tasks: TaskTracker,
    /// For each provider.
    provider_permits: Mutex<HashMap<String, Arc<Semaphore>>>,
    stop: CancellationToken,
    in_flight: Arc<InFlightSummaries>,
    /// What turns go before.
    pub(super) turn_priority: TurnPriority,
}

impl std::fmt::Debug for Summaries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Summaries")
    }
}

impl Summaries {
    #[must_use]
    pub fn new(
        store: Arc<Store>,
        models: Arc<Models>,
        usage: Arc<UsageTracker>,
        directory: Arc<AgentIndex>,
        clock: Clock,
        (home, sessions_lock): (PathBuf, Arc<RwLock<()>>),
        tasks: TaskTracker,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            models,
            usage,
            clock,
            agents: directory,
            home,
            sessions_lock,
            tasks,
            provider_permits: Mutex::default(),
            stop: CancellationToken::new(),
            in_flight: Arc::default(),
            turn_priority: TurnPriority::default(),
        })
    }

    /// Calls no model any more; what is not there yet is left to the next start.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Returns what is cancelled when no model is called in the background any more.
    pub(super) fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Whether a session of `draft` is to be summarised by a model: there is one, and no cap forbids it. A stop calls none, so
    /// that caps are looked at when the next start does.
    pub(super) async fn requested_summary(&self, draft: &SessionDraft) -> Option<PendingSummary> {
        let model = draft.settings.model.as_deref()?;
        if draft.totals.chars < MIN_CHARS || self.models.resolve(model).is_err() {
            return None;
        }
        if draft.trigger != Trigger::Shutdown
            && let Err(failure) = self.usage.check_limits(&draft.settings).await
        {
            tracing::info!(agent = %draft.settings.name, %failure, "no model is asked for a summary");
            return None;
        }
        Some(PendingSummary { described: draft.description.is_some() })
    }

    /// Asks the agent's model about a session that was just saved; an event `summary.ready` follows, whatever comes of it.
    pub(super) fn start(self: &Arc<Self>, session: Uuid, facts: Arc<AgentSettings>) {
        if self.stop.is_cancelled() {
            return;
        }
        let Some(under_way) = self.in_flight.begin(session) else { return };
        let all = self.clone();
        self.tasks.spawn(async move {
            if let Some(outcome) = all.request_when_free(session, &facts).await {
                all.publish(under_way, &facts, outcome).await;
            }
        });
    }

    /// Whether the summary of this session is on its way.
    #[must_use]
    pub fn is_in_flight(&self, session: Uuid) -> bool {
        self.in_flight.contains(session)
    }

    /// Waits until no summary of this session is on its way, for so long at most; whether one was.
    pub async fn wait_until_done(&self, session: Uuid, most: Duration) -> bool {
        self.in_flight.wait_until_done(session, self.clock.ticks().after(most)).await
    }

    /// Lets those go who have waited long enough, until the daemon stops.
    pub async fn run_timers(self: Arc<Self>) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.in_flight.run_timers(&self.clock) => {}
        }
    }

    /// Asks when it is its turn. `None`: the daemon stops, and the next start sees to it.
    async fn request_when_free(&self, session: Uuid, facts: &AgentSettings) -> Option<RequestOutcome> {
        let calls = self.permits_of(facts);
        let _turn = tokio::select! {
            biased;
            () = self.stop.cancelled() => return None,
            turn = calls.acquire() => turn,
        };
        let own = self.target(facts).filter(|target| self.models.is_self_hosted(target)).map(|target| target.provider);
        let ask = |stop| self.request_now(session, facts, stop);
        self.turn_priority.run_between_turns(own.as_deref(), &self.stop, ask).await
    }

    /// Asks. `None`: `stop` came first.
    async fn request_now(
        &self,
        session: Uuid,
        facts: &AgentSettings,
        stop: CancellationToken,
    ) -> Option<RequestOutcome> {
        let asked = match self.load_input(session).await {
            Ok(Some(source)) => SummaryRequest { summaries: self, facts, source: Box::new(source), stop }.run().await,
            Ok(None) => RequestOutcome::Skipped,
            Err(failure) => {
                tracing::warn!(agent = %facts.name, %session, %failure, "a session cannot be summarised");
                RequestOutcome::Skipped
            }
        };
        (!matches!(asked, RequestOutcome::Stopped)).then_some(asked)
    }

    fn target(&self, facts: &AgentSettings) -> Option<ModelRef> {
        facts.model.as_deref().and_then(|model| self.models.resolve(model).ok())
    }

    /// The permits of the provider that the agent's model is of.
    fn permits_of(&self, facts: &AgentSettings) -> Arc<Semaphore> {
        let provider = self.target(facts).map(|target| target.provider).unwrap_or_default();
        let mut calls = self.provider_permits.lock().unwrap_or_else(PoisonError::into_inner);
        calls.entry(provider).or_insert_with(|| Arc::new(Semaphore::new(MAX_CALLS_PER_PROVIDER))).clone()
    }

    /// What a model is to be asked about: `None` where the session is gone, or was changed by hand.
    async fn load_input(&self, session: Uuid) -> Result<Option<SummaryInput>> {
        // Until it is read, its file does not move.
        let _stays = self.sessions_lock.read().await;
        let Some(wanted) = self.store.catalog.pending_summary(session).await? else { return Ok(None) };
        let Some(row) = self.store.catalog.session(session).await? else { return Ok(None) };
        let path = session_files::path_of(&self.agent_dir(&row).await?, &row.header.session_id);
        let found = tokio::task::spawn_blocking(move || session_files::read(&path));
        let found = found.await.map_err(|e| Error::internal(e.to_string()))??;
        let known = found.stamp == row.file_stamp;
        Ok(found.file.ok().filter(|_| known).map(|file| SummaryInput {
            wanted,
            header: row.header,
            messages: file.messages,
        }))
    }

    /// Puts the model's words in place where there are any, and says that the summary is ready.
    async fn publish(&self, under_way: InFlightGuard, facts: &AgentSettings, outcome: RequestOutcome) {
        let session = under_way.session;
        // Nobody deletes it before it is said: what is said of a session that is purged afterwards goes with it.
        let _stays = self.sessions_lock.read().await;
        if let RequestOutcome::Answered { answer, source } = outcome
            && let Err(failure) = self.store_summary(session, answer, source).await
        {
            tracing::warn!(agent = %facts.name, %session, %failure, "a summary cannot be kept");
        }
        if let Err(failure) = self.store.catalog.dequeue_summary(session).await {
            tracing::warn!(%session, %failure, "a summary that is done may be asked for again");
        }
        let header = self.store.catalog.session(session).await.ok().flatten().map(|row| row.header);
        // Whoever asks from here on finds it; whoever asked before hears of it.
        drop(under_way);
        let (summary, source) =
            header.map_or((None, SummarySource::None), |header| (header.summary, header.summary_source));
        let data = json!({"id": session, "summary": summary, "source": source});
        let event =
            NewEvent { at: self.clock.now(), kind: EventType::SummaryReady, agent: Some(facts.name.clone()), data };
        drop(self.store.journal.emit(vec![event]));
    }

    async fn store_summary(&self, session: Uuid, answer: ModelSummary, source: Box<SummaryInput>) -> Result<()> {
        let Some(row) = self.store.catalog.session(session).await? else { return Ok(()) };
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
            tracing::info!(%session, "a session was edited before its summary came; it was left alone");
        }
        Ok(())
    }

    /// The directory of the agent that has the session, destroyed ones included.
    async fn agent_dir(&self, row: &SessionRow) -> Result<PathBuf> {
        let agent = row.header.agent_id;
        if let Some(entry) = self.agents.by_id(agent) {
            return Ok(entry.settings.dir.clone());
        }
        let row = self.store.catalog.agents_by_id(vec![agent]).await?.pop();
        Ok(row.map(|row| self.home.join(row.dir)).unwrap_or_default())
    }
}

/// A session that a model is asked about.
#[derive(Debug)]
pub struct SummaryInput {
    pub wanted: PendingSummary,
    /// As it was then.
    pub header: SessionHeader,
    pub messages: Vec<crate::message::StoredMessage>,
}
