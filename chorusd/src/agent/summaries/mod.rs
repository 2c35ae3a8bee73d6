//! Summaries by the agents' own models. A save is durable first, with a summary in the conversation's own words; the model's takes
//! its place when it is there. What a stop or a crash leaves to be summarised, the next start does.

mod ask;
mod left_over;
mod under_way;

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

use self::ask::{Ask, Outcome};
use self::under_way::{OnItsWay, UnderWay};
use super::Facts;
use super::directory::Directory;
use super::effect::Draft;
use super::precedence::Precedence;
use crate::clock::Clock;
use crate::failure::{Failure, Result};
use crate::llm::{Models, Target};
use crate::store::catalog::{SessionRow, Wanted};
use crate::store::journal::NewEvent;
use crate::store::{Store, session_files};
use crate::summary::Answer;
use crate::usage::Usage;

/// Summaries that one provider is asked for at once: whatever falls idle together, the others wait, and hold no transcript while
/// they do. One that answers slowly keeps those of another from nothing.
const CALLS: usize = 4;

/// With fewer characters a conversation is its own summary: none is shorter.
const LEAST: u64 = 40;

/// What asks models for summaries, and knows which are on their way.
pub struct Summaries {
    store: Arc<Store>,
    pub(super) models: Arc<Models>,
    pub(super) usage: Arc<Usage>,
    clock: Clock,
    directory: Arc<Directory>,
    home: PathBuf,
    /// As in [`crate::ops::Ops`].
    sessions_lock: Arc<RwLock<()>>,
    tasks: TaskTracker,
    /// For each provider.
    calls: Mutex<HashMap<String, Arc<Semaphore>>>,
    stop: CancellationToken,
    under_way: Arc<UnderWay>,
    /// What turns go before.
    pub(super) precedence: Precedence,
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
        usage: Arc<Usage>,
        directory: Arc<Directory>,
        clock: Clock,
        (home, sessions_lock): (PathBuf, Arc<RwLock<()>>),
        tasks: TaskTracker,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            models,
            usage,
            clock,
            directory,
            home,
            sessions_lock,
            tasks,
            calls: Mutex::default(),
            stop: CancellationToken::new(),
            under_way: Arc::default(),
            precedence: Precedence::default(),
        })
    }

    /// Calls no model any more; what is not there yet is left to the next start.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Returns what is cancelled when no model is called in the background any more.
    pub(super) fn stopping(&self) -> &CancellationToken {
        &self.stop
    }

    /// Whether a session of `draft` is to be summarised by a model: there is one, and no cap forbids it. A stop calls none, so
    /// that caps are looked at when the next start does.
    pub(super) async fn wanted(&self, draft: &Draft) -> Option<Wanted> {
        let model = draft.facts.model.as_deref()?;
        if draft.totals.chars < LEAST || self.models.resolve(model).is_err() {
            return None;
        }
        if draft.trigger != Trigger::Shutdown
            && let Err(failure) = self.usage.may_call(&draft.facts).await
        {
            tracing::info!(agent = %draft.facts.name, %failure, "no model is asked for a summary");
            return None;
        }
        Some(Wanted { described: draft.description.is_some() })
    }

    /// Asks the agent's model about a session that was just saved; an event `summary.ready` follows, whatever comes of it.
    pub(super) fn begin(self: &Arc<Self>, session: Uuid, facts: Arc<Facts>) {
        if self.stop.is_cancelled() {
            return;
        }
        let Some(under_way) = self.under_way.enter(session) else { return };
        let all = self.clone();
        self.tasks.spawn(async move {
            if let Some(outcome) = all.ask(session, &facts).await {
                all.finish(under_way, &facts, outcome).await;
            }
        });
    }

    /// Whether the summary of this session is on its way.
    #[must_use]
    pub fn is_under_way(&self, session: Uuid) -> bool {
        self.under_way.has(session)
    }

    /// Waits until no summary of this session is on its way, for so long at most; whether one was.
    pub async fn settled(&self, session: Uuid, most: Duration) -> bool {
        self.under_way.settled(session, self.clock.ticks().after(most)).await
    }

    /// Lets those go who have waited long enough, until the daemon stops.
    pub async fn keep_time(self: Arc<Self>) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.under_way.keep_time(&self.clock) => {}
        }
    }

    /// Asks when it is its turn. `None`: the daemon stops, and the next start sees to it.
    async fn ask(&self, session: Uuid, facts: &Facts) -> Option<Outcome> {
        let calls = self.calls_of(facts);
        let _turn = tokio::select! {
            biased;
            () = self.stop.cancelled() => return None,
            turn = calls.acquire() => turn,
        };
        let own = self.target(facts).filter(|target| self.models.is_own(target)).map(|target| target.provider);
        let ask = |stop| self.ask_now(session, facts, stop);
        self.precedence.after_turns(own.as_deref(), &self.stop, ask).await
    }

    /// Asks. `None`: `stop` came first.
    async fn ask_now(&self, session: Uuid, facts: &Facts, stop: CancellationToken) -> Option<Outcome> {
        let asked = match self.source(session).await {
            Ok(Some(source)) => Ask { all: self, facts, source: Box::new(source), stop }.run().await,
            Ok(None) => Outcome::LeftAlone,
            Err(failure) => {
                tracing::warn!(agent = %facts.name, %session, %failure, "a session cannot be summarised");
                Outcome::LeftAlone
            }
        };
        (!matches!(asked, Outcome::Stopped)).then_some(asked)
    }

    fn target(&self, facts: &Facts) -> Option<Target> {
        facts.model.as_deref().and_then(|model| self.models.resolve(model).ok())
    }

    /// The permits of the provider that the agent's model is of.
    fn calls_of(&self, facts: &Facts) -> Arc<Semaphore> {
        let provider = self.target(facts).map(|target| target.provider).unwrap_or_default();
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.entry(provider).or_insert_with(|| Arc::new(Semaphore::new(CALLS))).clone()
    }

    /// What a model is to be asked about: `None` where the session is gone, or was changed by hand.
    async fn source(&self, session: Uuid) -> Result<Option<Source>> {
        // Until it is read, its file does not move.
        let _stays = self.sessions_lock.read().await;
        let Some(wanted) = self.store.catalog.summary_wanted(session).await? else { return Ok(None) };
        let Some(row) = self.store.catalog.session(session).await? else { return Ok(None) };
        let path = session_files::path_of(&self.dir(&row).await?, &row.header.session_id);
        let found = tokio::task::spawn_blocking(move || session_files::read(&path));
        let found = found.await.map_err(|e| Failure::internal(e.to_string()))??;
        let known = found.stamp == row.file_stamp;
        Ok(found.file.ok().filter(|_| known).map(|file| Source { wanted, header: row.header, messages: file.messages }))
    }

    /// Puts the model's words in place where there are any, and says that the summary is ready.
    async fn finish(&self, under_way: OnItsWay, facts: &Facts, outcome: Outcome) {
        let session = under_way.session;
        // Nobody deletes it before it is said: what is said of a session that is purged afterwards goes with it.
        let _stays = self.sessions_lock.read().await;
        if let Outcome::Answered { answer, source } = outcome
            && let Err(failure) = self.keep(session, answer, source).await
        {
            tracing::warn!(agent = %facts.name, %session, %failure, "a summary cannot be kept");
        }
        if let Err(failure) = self.store.catalog.summary_done(session).await {
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

    async fn keep(&self, session: Uuid, answer: Answer, source: Box<Source>) -> Result<()> {
        let Some(row) = self.store.catalog.session(session).await? else { return Ok(()) };
        let dir = self.dir(&row).await?;
        let Source { wanted, header: before, .. } = *source;
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
        let kept = self.store.judged(self.store.amend_if(session, dir, may, change).await)?;
        if kept.is_none() {
            tracing::info!(%session, "a session was edited before its summary came; it was left alone");
        }
        Ok(())
    }

    /// The directory of the agent that has the session, destroyed ones included.
    async fn dir(&self, row: &SessionRow) -> Result<PathBuf> {
        let agent = row.header.agent_id;
        if let Some(entry) = self.directory.by_id(agent) {
            return Ok(entry.facts.dir.clone());
        }
        let row = self.store.catalog.agents_by_id(vec![agent]).await?.pop();
        Ok(row.map(|row| self.home.join(row.dir)).unwrap_or_default())
    }
}

/// A session that a model is asked about.
#[derive(Debug)]
pub struct Source {
    pub wanted: Wanted,
    /// As it was then.
    pub header: SessionHeader,
    pub messages: Vec<crate::message::Stored>,
}
