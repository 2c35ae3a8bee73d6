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
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::backlog::Backlog;
use super::failure::Failure;
use super::service::{IndexProgress, SearchService};
use super::timer::Timer;
use super::{message_text, source};
use crate::agent::agent_index::AgentIndex;
use crate::agent::command;
use crate::agent::registry::Registry;
use crate::background_thread::run_at_low_priority;
use crate::semantic::SemanticService;

/// How long changes are collected before they are indexed together.
const COLLECT_FOR: Duration = Duration::from_millis(50);

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
    /// True while deleted texts are in the files of the index.
    must_purge: bool,
}

impl Indexer {
    async fn run(&mut self) {
        let (mut damage, mut rebuilt) = (None, None::<Instant>);
        while !self.stop.is_cancelled() {
            let failure = match self.open(damage.take()) {
                Ok(index) => match self.serve(&index).await {
                    Ok(()) => return,
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

    /// Indexes whatever changes, until the daemon stops.
    async fn serve(&mut self, index: &Arc<SearchIndex>) -> Result<(), Failure> {
        self.backlog = Backlog::default();
        // A failure of the index before this one.
        let _ = self.service.failed_search.notified().now_or_never();
        self.compare_with_catalog(index).await?;
        let changes = self.store.catalog.sessions.changes();
        while !self.stop.is_cancelled() {
            self.report(index, 0, false);
            if self.backlog.is_empty() {
                tokio::select! {
                    () = self.stop.cancelled() => return Ok(()),
                    () = changes.wait() => {}
                    () = self.registry.live_changes.wait() => {}
                    () = self.service.failed_search.notified() => return Err(Failure::Search),
                    () = Timer::start(PURGE_AGAIN).fired(), if self.must_purge => {}
                    () = Timer::start(KEEP_WRITER).fired(), if self.writer.is_some() && !self.must_purge => {
                        self.writer = None;
                        crate::lifecycle::malloc_trim::schedule_trim(&self.store);
                        continue;
                    }
                }
                self.sleep(COLLECT_FOR).await;
            }
            self.round(index).await?;
        }
        Ok(())
    }

    /// Tells how far it is; `in_work` sources are not committed yet.
    fn report(&self, index: &SearchIndex, in_work: usize, is_starting: bool) {
        let waiting = (self.backlog.len() + in_work) as u64;
        self.service.set_progress(IndexProgress { indexed: index.source_count(), waiting, is_starting });
    }

    /// Finds what changed while nobody looked.
    async fn compare_with_catalog(&mut self, index: &Arc<SearchIndex>) -> Result<(), Failure> {
        let mut known: HashMap<SourceId, _> = index.sources()?.into_iter().map(|source| (source.id, source)).collect();
        let mut after = 0;
        loop {
            let page = self.store.catalog.sessions.stamps_after(after, STAMPS_AT_ONCE).await?;
            let Some(last) = page.last() else { break };
            after = last.rowid;
            for stamp in page {
                let indexed = known.remove(&SourceId::from(stamp.id));
                if indexed.is_none_or(|source| source.header_stamp != stamp.file_stamp) {
                    // The newest first.
                    self.backlog.push(stamp.id);
                }
            }
            self.report(index, 0, true);
        }
        for (key, head) in self.registry.live_heads() {
            let indexed = known.remove(&source::live_id(key));
            let is_of_context = |stamp: &str| stamp.starts_with(&format!("{}-", head.context.0));
            if indexed.is_none_or(|source| source.messages != head.messages || !is_of_context(&source.stamp)) {
                self.registry.live_changes.note(key);
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
    async fn round(&mut self, index: &Arc<SearchIndex>) -> Result<(), Failure> {
        let begun = Instant::now();
        let end = begun + ROUND;
        let changed = self.store.catalog.sessions.changes().take();
        let live = self.registry.live_changes.take();
        let mut in_work = live.len() + changed.agents.len() + changed.sessions.len();
        self.report(index, in_work, false);
        if !changed.is_empty() {
            self.store.catalog.sessions.commit_changes().await?;
            for agent in changed.agents {
                let sessions = self.store.catalog.sessions.ids_of_agent(agent).await?;
                sessions.into_iter().for_each(|id| self.backlog.push(id));
            }
        }
        let mut must_purge = false;
        // Before the live contexts: what was saved and cleared is then held by its session, and need not be indexed again.
        let mut sessions: Vec<Uuid> = changed.sessions.into_iter().collect();
        sessions.drain(sessions.len().min(ROWS_AT_ONCE)..).for_each(|id| self.backlog.push(id));
        must_purge |= self.index_sessions(index, sessions, begun + BEFORE_LIVE).await?;
        for conversation in live {
            must_purge |= self.index_live(index, conversation).await?;
            if self.stop.is_cancelled() {
                return Ok(());
            }
        }
        while !self.backlog.is_empty() && Instant::now() < end && !self.stop.is_cancelled() {
            let ids = self.backlog.take(ROWS_AT_ONCE);
            in_work += ids.len();
            self.report(index, in_work, false);
            must_purge |= self.index_sessions(index, ids, end).await?;
        }
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
                        self.registry.live_changes.note(key);
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
