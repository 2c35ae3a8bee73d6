//! The thread that keeps the index up to date.

mod sessions;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chorus_agent_core::context::{PageBudget, PageRange};
use chorus_base::error::Result;
use chorus_proto::ErrorKind;
use chorus_search::{IndexWriter, Opened, SearchError, SearchIndex, SourceId};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;
use chorus_store::Store;
use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::backlog::Backlog;
use super::failure::Failure;
use super::live_changes::{self, Novelty};
use super::service::{IndexProgress, SearchService};
use super::timer::Timer;
use super::{message_text, source};
use crate::agent::agent_index::AgentIndex;
use crate::agent::command;
use crate::agent::registry::Registry;
use crate::background_thread::run_at_low_priority;
use crate::semantic::SemanticService;

/// How long changes are collected before they are indexed together, unless a search waits for them. Each commit of the index costs
/// as much as hundreds of messages in it, so the time grows with that of the last round: while messages arrive without a pause, at
/// most a part in `PAUSE_FACTOR` of the time goes to the index, or there is one commit in `MAX_COLLECT`. While something searches, it
/// is the shortest time.
const COLLECT_FOR: Duration = Duration::from_millis(50);
const MAX_COLLECT: Duration = Duration::from_secs(5);
const PAUSE_FACTOR: u32 = 20;

/// How long a round indexes before it commits and looks for newer changes. With the commit, a message is found within a second
/// even while a large home is indexed.
const ROUND: Duration = Duration::from_millis(600);

/// How much of a round goes to changed sessions before live contexts, so that many large saves do not delay what is said now.
const BEFORE_LIVE: Duration = Duration::from_millis(200);

/// Number of sessions whose rows are read at once.
const ROWS_AT_ONCE: usize = 32;

/// Number of rows that a start reads at once, so that other reads of the catalog run in between.
const STAMPS_AT_ONCE: u64 = 1000;

/// How long the writer, which takes memory, is kept without work.
const KEEP_WRITER: Duration = Duration::from_secs(10);

/// When the store is read again that could not be reached. The index stays open until then.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// When an index that failed is opened again.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// When it is looked again whether what was deleted is overwritten.
const PURGE_AGAIN: Duration = Duration::from_millis(100);

/// Memory of the writer for documents that are not written yet, in bytes.
const WRITER_MEMORY: usize = 15 << 20;

/// Niceness of the thread, and of those that the index starts from it. Higher than that of capture: what is being kept comes first.
const NICE: i32 = 18;

/// The parts of a page of a live context: a few megabytes at once, and messages of any length.
const PAGE: PageBudget = PageBudget { page_bytes: 4 << 20, message_bytes: usize::MAX };

/// Keeps the index up to date until `stop`. Returns when its thread has ended.
pub async fn run(
    service: Arc<SearchService>,
    semantic: Arc<SemanticService>,
    store: Arc<Store>,
    registry: Arc<Registry>,
    agents: Arc<AgentIndex>,
    home: PathBuf,
    stop: CancellationToken,
) {
    if !service.settings.is_enabled {
        service.set_off();
        let dir = service.dir().to_owned();
        let removed = chorus_runtime::spawn_blocking(move || std::fs::remove_dir_all(dir)).await;
        if let Ok(Err(error)) = removed
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "cannot delete the search index, which is off");
        }
        return;
    }
    let work = || async move {
        let mut indexer = Indexer {
            service,
            semantic,
            store,
            registry,
            agents,
            home,
            stop,
            backlog: Backlog::default(),
            writer: None,
            round_time: Duration::ZERO,
            must_purge: false,
        };
        indexer.run().await;
    };
    run_at_low_priority("search", NICE, work).await;
}

struct Indexer {
    service: Arc<SearchService>,
    semantic: Arc<SemanticService>,
    store: Arc<Store>,
    registry: Arc<Registry>,
    agents: Arc<AgentIndex>,
    home: PathBuf,
    stop: CancellationToken,
    backlog: Backlog,
    writer: Option<IndexWriter>,
    /// How long the last round took.
    round_time: Duration,
    /// True while deleted texts are in the files of the index.
    must_purge: bool,
}

/// Numbers of sources that are being indexed and are not committed yet.
#[derive(Debug, Clone, Copy, Default)]
struct InWork {
    sources: u64,
    /// Those of which the index has nothing.
    missing: u64,
}

impl InWork {
    /// Adds live contexts, all of them and those that are new, to a number of sessions.
    fn of(sessions: u64, (live, new_live): (u64, u64)) -> Self {
        Self { sources: sessions + live, missing: sessions + new_live }
    }

    fn add_sessions(&mut self, sessions: u64) {
        self.sources += sessions;
        self.missing += sessions;
    }

    /// Removes sessions that wait in the backlog again, where they are counted.
    fn remove_sessions(&mut self, sessions: u64) {
        self.sources = self.sources.saturating_sub(sessions);
        self.missing = self.missing.saturating_sub(sessions);
    }
}

impl Indexer {
    async fn run(&mut self) {
        let (mut damage, mut rebuilt) = (None, None::<Instant>);
        while !self.stop.is_cancelled() {
            let failure = match self.open(damage.take()) {
                Ok(mut index) => match self.serve(&mut index).await {
                    Ok(()) => return,
                    Err(Failure::Store(failure))
                        if matches!(failure.kind, ErrorKind::StorageUnavailable | ErrorKind::Busy) =>
                    {
                        tracing::info!(%failure, "the store cannot be read to index it; trying again in a second");
                        self.writer = None;
                        self.sleep(STORE_RETRY).await;
                        continue;
                    }
                    Err(failure) => {
                        let is_damaged = matches!(failure, Failure::Index(_) | Failure::Search)
                            && !index.damaged_files().is_ok_and(|files| files.is_empty());
                        if matches!(failure, Failure::Search) && !is_damaged {
                            tracing::warn!("a search failed, but the index is whole");
                            self.writer = None;
                            continue;
                        }
                        damage = is_damaged.then(|| failure.to_string());
                        failure.to_string()
                    }
                },
                Err(failure) => failure.to_string(),
            };
            self.writer = None;
            if self.stop.is_cancelled() {
                return;
            }
            // Once at once; then something else is wrong, too.
            if damage.is_some() && rebuilt.is_none_or(|at| at.elapsed() > RETRY_AFTER) {
                rebuilt = Some(Instant::now());
                continue;
            }
            damage = None;
            tracing::warn!(failure, "the search index failed; opening it again in a minute");
            self.service.set_failed(failure);
            self.sleep(RETRY_AFTER).await;
        }
    }

    /// Waits for that long, or until the daemon stops.
    async fn sleep(&self, duration: Duration) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = Timer::start(duration).fired() => {}
        }
    }

    /// Opens the index; one with that damage is created again.
    fn open(&self, damage: Option<String>) -> Result<Arc<SearchIndex>, SearchError> {
        let (dir, options) = (self.service.dir(), self.service.settings.options);
        let (index, opened) = match damage {
            Some(why) => SearchIndex::create(dir, options, why)?,
            None => SearchIndex::open(dir, options)?,
        };
        if let Opened::Created { why } = opened {
            tracing::info!(why, "building the search index");
        }
        let index = Arc::new(index);
        self.service.set_open(index.clone());
        self.semantic.note_index_change(true);
        Ok(index)
    }

    /// Drops the writer once its merges have ended, and opens the index again.
    async fn finish_writer(&mut self, index: &mut Arc<SearchIndex>) {
        let Some(writer) = self.writer.take() else { return };
        // On a thread of its own: a stop does not wait for large merges.
        let (sender, ended) = oneshot::channel();
        let finish = move || _ = sender.send(writer.finish());
        if let Err(error) = std::thread::Builder::new().name("search-merges".into()).spawn(finish) {
            return tracing::warn!(%error, "cannot start a thread");
        }
        tokio::select! {
            () = self.stop.cancelled() => return,
            ended = ended => if let Ok(Err(error)) = ended {
                tracing::debug!(%error, "a merge of the search index failed");
            },
        }
        self.reopen(index);
    }

    /// Opens the index again: the work on it has mapped all of its files into memory.
    fn reopen(&self, index: &mut Arc<SearchIndex>) {
        match index.reopen() {
            Ok(again) => {
                *index = Arc::new(again);
                self.service.replace_open(index.clone());
            }
            Err(error) => tracing::debug!(%error, "cannot open the search index again"),
        }
    }

    /// Indexes whatever changes, until the daemon stops.
    async fn serve(&mut self, index: &mut Arc<SearchIndex>) -> Result<(), Failure> {
        self.backlog = Backlog::default();
        // A failure of the index before this one.
        let _ = self.service.failed_search.notified().now_or_never();
        self.compare_with_catalog(index).await?;
        let changes = self.store.catalog.sessions.changes();
        while !self.stop.is_cancelled() {
            if !self.must_purge {
                self.service.note_erased();
            }
            self.report(index, InWork::default(), false);
            if self.backlog.is_empty() {
                let idle_since = Instant::now();
                tokio::select! {
                    () = self.stop.cancelled() => return Ok(()),
                    () = changes.wait() => {}
                    () = self.registry.live_changes.wait() => {}
                    () = self.service.wait_until_erasure() => {}
                    () = self.service.failed_search.notified() => return Err(Failure::Search),
                    () = Timer::start(PURGE_AGAIN).fired(), if self.must_purge => {
                        self.must_purge = !self.writer(index)?.purge()?;
                        continue;
                    }
                    () = Timer::start(KEEP_WRITER).fired(), if self.writer.is_some() && !self.must_purge => {
                        self.finish_writer(index).await;
                        crate::lifecycle::malloc_trim::schedule_trim(&self.store);
                        continue;
                    }
                }
                // What was deleted does not wait.
                let pause = if self.must_purge { Duration::ZERO } else { self.round_time * PAUSE_FACTOR };
                self.collect(pause.min(MAX_COLLECT).saturating_sub(idle_since.elapsed())).await;
            }
            let begun = Instant::now();
            let deleted = self.service.begin_round();
            self.round(index, deleted).await?;
            self.service.end_round();
            self.round_time = begun.elapsed();
        }
        Ok(())
    }

    /// Waits for `pause`, or a little if that is less or if something searches. Returns early if a search or an erasure waits, or the daemon
    /// stops.
    async fn collect(&self, pause: Duration) {
        let collected = async {
            self.sleep(COLLECT_FOR).await;
            tokio::select! {
                () = self.service.wait_until_passed_over() => {}
                () = self.sleep(pause.saturating_sub(COLLECT_FOR)) => {}
            }
        };
        tokio::select! {
            () = self.service.wait_until_awaited() => {}
            () = self.service.wait_until_erasure() => {}
            () = collected => {}
        }
    }

    /// Tells how far it is.
    fn report(&self, index: &SearchIndex, in_work: InWork, is_starting: bool) {
        let (indexed, backlog) = (index.source_count(), self.backlog.len() as u64);
        let (waiting, missing) = (backlog + in_work.sources, backlog + in_work.missing);
        self.service.set_progress(IndexProgress { indexed, waiting, missing, is_starting });
    }

    /// Finds what changed while nobody looked.
    async fn compare_with_catalog(&mut self, index: &Arc<SearchIndex>) -> Result<(), Failure> {
        self.service.begin_comparison();
        let mut known: HashMap<SourceId, _> = index.sources()?.into_iter().map(|source| (source.id, source)).collect();
        let mut after = 0;
        loop {
            let page = self.store.catalog.sessions.stamps_after(after, STAMPS_AT_ONCE).await?;
            let Some(last) = page.last() else { break };
            after = last.position;
            for stamp in page {
                let indexed = known.remove(&SourceId::from(stamp.id));
                if indexed.is_none_or(|source| source.header_stamp != stamp.file_stamp) {
                    // The newest first.
                    self.backlog.push(stamp.id);
                }
            }
            self.report(index, InWork::default(), true);
        }
        for (key, head) in self.registry.live_heads() {
            let indexed = known.remove(&source::live_id(key));
            let is_of_context = |stamp: &str| stamp.starts_with(&format!("{}-", head.context.0));
            let novelty = if indexed.is_none() { Novelty::New } else { Novelty::Changed };
            if indexed.is_none_or(|source| source.messages != head.messages || !is_of_context(&source.stamp)) {
                self.registry.live_changes.note(key, novelty);
            }
        }
        if !known.is_empty() {
            let writer = self.writer(index)?;
            known.into_keys().try_for_each(|id| writer.remove(id).map(drop))?;
            writer.commit()?;
            self.semantic.note_index_change(true);
        }
        if index.is_purge_due() {
            self.writer(index)?.begin_purge()?;
            self.must_purge = true;
        }
        Ok(())
    }

    fn writer(&mut self, index: &Arc<SearchIndex>) -> Result<&mut IndexWriter, SearchError> {
        match &mut self.writer {
            Some(writer) => Ok(writer),
            none => Ok(none.insert(index.writer(WRITER_MEMORY)?)),
        }
    }

    /// Indexes changes for a while, the newest first, and commits.
    async fn round(&mut self, index: &Arc<SearchIndex>, deleted: Vec<Uuid>) -> Result<(), Failure> {
        let begun = Instant::now();
        let end = begun + ROUND;
        // Before they are taken, so that at no moment nothing seems to wait.
        let (sessions, agents) = self.store.catalog.sessions.changes().counts();
        self.report(index, InWork::of(sessions + agents, self.registry.live_changes.counts()), false);
        let changed = self.store.catalog.sessions.changes().take();
        let live = self.registry.live_changes.take();
        let changed_rows = (changed.agents.len() + changed.sessions.len()) as u64;
        let mut in_work = InWork::of(changed_rows, (live.len() as u64, live_changes::count_new(&live)));
        self.report(index, in_work, false);
        if !changed.is_empty() {
            self.store.catalog.sessions.commit_changes().await?;
            in_work.remove_sessions(changed.agents.len() as u64);
            for agent in changed.agents {
                let sessions = self.store.catalog.sessions.ids_of_agent(agent).await?;
                sessions.into_iter().for_each(|id| self.backlog.push(id));
            }
        }
        let mut must_purge = false;
        for session in deleted {
            must_purge |= self.writer(index)?.remove(SourceId::from(session))?;
        }
        // Before the live contexts: what was saved and cleared is then held by its session, and need not be indexed again.
        let mut sessions: Vec<Uuid> = changed.sessions.into_iter().collect();
        let later = sessions.split_off(sessions.len().min(ROWS_AT_ONCE));
        in_work.remove_sessions(later.len() as u64);
        later.into_iter().for_each(|id| self.backlog.push(id));
        let waiting = self.backlog.len();
        must_purge |= self.index_sessions(index, sessions, begun + BEFORE_LIVE).await?;
        in_work.remove_sessions(self.backlog.len().saturating_sub(waiting) as u64);
        for conversation in live.into_keys() {
            must_purge |= self.index_live(index, conversation).await?;
            if self.stop.is_cancelled() {
                return Ok(());
            }
        }
        while !self.backlog.is_empty() && Instant::now() < end && !self.stop.is_cancelled() {
            let ids = self.backlog.take(ROWS_AT_ONCE);
            in_work.add_sessions(ids.len() as u64);
            self.report(index, in_work, false);
            let waiting = self.backlog.len();
            must_purge |= self.index_sessions(index, ids, end).await?;
            in_work.remove_sessions(self.backlog.len().saturating_sub(waiting) as u64);
        }
        self.report(index, in_work, false);
        let is_purging = self.must_purge;
        let writer = self.writer(index)?;
        writer.commit()?;
        if must_purge {
            writer.begin_purge()?;
        }
        if must_purge || is_purging {
            self.must_purge = !writer.purge()?;
        }
        self.semantic.note_index_change(must_purge);
        Ok(())
    }

    /// Indexes what is new in a live context. Returns true if texts were removed.
    async fn index_live(&mut self, index: &Arc<SearchIndex>, key: ConversationKey) -> Result<bool, Failure> {
        let id = source::live_id(key);
        let Some(head) = self.registry.live_head(key).filter(|head| head.messages > 0) else {
            return Ok(self.writer(index)?.remove(id)?);
        };
        let Some(agent) = self.agents.by_id(key.agent) else { return Ok(false) };
        let name = agent.settings.name.clone();
        let known = index.source(id)?;
        let held = known.as_ref().map_or(0, |known| known.messages);
        // The last indexed message is read again, to see that it is still the same.
        let Some(messages) = self.read_live(key, held.saturating_sub(1)).await else { return Ok(false) };
        let tool_results = self.service.settings.tool_results;
        let extract = |message: &StoredMessage| message_text::extract(message, &name, tool_results);
        let is_same = |known: &str| held > 0 && source::live_stamp(&head, messages.first()) == known;
        if known.is_some_and(|known| is_same(&known.stamp)) {
            let new = &messages[1..];
            let source = source::of_context(key, &head, &self.agents, messages.last());
            if new.is_empty() || self.writer(index)?.extend(&source, held, new.iter().map(extract))? {
                return Ok(false);
            }
        }
        let messages = match held {
            0 | 1 => messages,
            _ => match self.read_live(key, 0).await {
                Some(messages) => messages,
                None => return Ok(false),
            },
        };
        if messages.is_empty() {
            return Ok(self.writer(index)?.remove(id)?);
        }
        let source = source::of_context(key, &head, &self.agents, messages.last());
        Ok(self.writer(index)?.put(&source, messages.iter().map(extract))?)
    }

    /// Reads the messages of a live context from an index on; `None` if they cannot be read now.
    async fn read_live(&self, key: ConversationKey, from: u64) -> Option<Vec<StoredMessage>> {
        // A start with a new index reads all contexts. Most are out of memory, and stay there.
        if let Some(mut messages) = self.registry.read_unloaded(key).await {
            messages.drain(..usize::try_from(from).unwrap_or(usize::MAX).min(messages.len()));
            return Some(messages);
        }
        let (mut messages, mut next) = (Vec::new(), Some(from));
        while let Some(offset) = next {
            let range = PageRange::From { offset, limit: u64::MAX };
            match self.registry.ask(key, command::read_page(range, PAGE)).await {
                Ok(page) => {
                    messages.extend(page.messages);
                    next = page.next;
                }
                Err(failure) => {
                    if failure.kind == ErrorKind::Busy {
                        self.registry.live_changes.note(key, Novelty::Changed);
                    }
                    return None;
                }
            }
        }
        Some(messages)
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        // Before the thread ends: it holds the lock of the index.
        self.writer = None;
    }
}
