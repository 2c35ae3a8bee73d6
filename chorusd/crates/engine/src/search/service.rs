//! The index of a home as its users see it: open or not, how much is indexed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_base::sync::RwLock;
use chorus_proto::ErrorKind;
use chorus_proto::methods::search::SearchIndexState;
use chorus_search::{IndexOptions, SearchIndex};
use chorus_store::catalog::SessionChanges;
use tokio::sync::Notify;

use super::live_changes::LiveChanges;

/// Directory of the index below the home.
const INDEX_DIR: &str = "index";

/// Number of sessions and live contexts for which a search waits, and for how long. If more wait, the daemon is busy, and the search
/// says how much is indexed.
const MAX_AWAITED: u64 = 4;
const MAX_WAIT: Duration = Duration::from_millis(300);

/// How long a search waits for the index of a daemon that it may have started.
const MAX_OPENING: Duration = Duration::from_secs(2);

/// Settings of the index. An index that was made with others is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchSettings {
    /// Without it, there is no index.
    pub is_enabled: bool,
    /// Index the results of tools, too.
    pub tool_results: bool,
    pub options: IndexOptions,
}

/// How much of a home is indexed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexProgress {
    /// Number of indexed sessions and live contexts.
    pub indexed: u64,
    /// Number of sessions and live contexts that wait or are being indexed.
    pub waiting: u64,
    /// True until the index was compared with the catalog.
    pub is_starting: bool,
}

#[derive(Debug)]
enum State {
    Starting,
    Open(Arc<SearchIndex>),
    /// It cannot be opened or written, for this reason.
    Failed(String),
    /// The configuration wants none.
    Off,
}

/// The search index of a home.
#[derive(Debug)]
pub struct SearchService {
    dir: PathBuf,
    pub(super) settings: SearchSettings,
    state: RwLock<(State, IndexProgress)>,
    /// Notified when a search failed.
    pub(super) failed_search: Notify,
    /// Notified when the progress has changed.
    progressed: Notify,
    /// The changes that are not looked at yet.
    session_changes: Arc<SessionChanges>,
    live_changes: Arc<LiveChanges>,
}

impl SearchService {
    /// Creates the service; nothing is opened before the indexer runs.
    #[must_use]
    pub fn new(
        home: &Path,
        settings: SearchSettings,
        session_changes: Arc<SessionChanges>,
        live_changes: Arc<LiveChanges>,
    ) -> Self {
        let progress = IndexProgress { is_starting: true, ..IndexProgress::default() };
        Self {
            dir: home.join(INDEX_DIR),
            settings,
            state: RwLock::new((State::Starting, progress)),
            failed_search: Notify::new(),
            progressed: Notify::new(),
            session_changes,
            live_changes,
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns false if the configuration wants no index.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.settings.is_enabled
    }

    /// Returns the open index.
    ///
    /// # Errors
    /// `busy` while it is being opened; `storage_failed` if it cannot be used.
    pub fn index(&self) -> Result<Arc<SearchIndex>> {
        match &self.state.read().0 {
            State::Open(index) => Ok(index.clone()),
            State::Starting => {
                Err(Error::new(ErrorKind::Busy, "the search index is being opened").hint("try again in a moment"))
            }
            State::Failed(why) => {
                Err(Error::new(ErrorKind::StorageFailed, format!("the search index cannot be used: {why}"))
                    .hint("the daemon tries again every minute; see chorusctl daemon logs"))
            }
            State::Off => Err(Error::new(ErrorKind::InvalidConfig, "the search index is off")
                .hint("remove `index = false` from [search] in config.toml, then: chorusctl daemon restart")),
        }
    }

    /// Makes the indexer look whether the index is damaged, after a search failed.
    pub fn report_failure(&self) {
        self.failed_search.notify_one();
    }

    /// Returns how much is indexed; `None` if the index cannot be used.
    #[must_use]
    pub fn progress(&self) -> Option<SearchIndexState> {
        let state = self.state.read();
        let (open, progress) = (&state.0, state.1);
        let messages = match open {
            State::Open(index) => index.message_count(),
            State::Starting => 0,
            State::Failed(_) | State::Off => return None,
        };
        let (sessions, agents) = self.session_changes.counts();
        let waiting = progress.waiting + sessions + self.live_changes.count();
        Some(SearchIndexState {
            complete: !progress.is_starting && waiting + agents == 0,
            indexed: progress.indexed,
            total: progress.indexed.saturating_add(waiting),
            messages,
        })
    }

    pub(super) fn set_open(&self, index: Arc<SearchIndex>) {
        // Until it was compared with the catalog, nobody knows what is missing.
        *self.state.write() = (State::Open(index), IndexProgress { is_starting: true, ..IndexProgress::default() });
        self.progressed.notify_waiters();
    }

    pub(super) fn set_off(&self) {
        self.state.write().0 = State::Off;
        self.progressed.notify_waiters();
    }

    pub(super) fn set_failed(&self, why: String) {
        self.state.write().0 = State::Failed(why);
        self.progressed.notify_waiters();
    }

    pub(super) fn set_progress(&self, progress: IndexProgress) {
        self.state.write().1 = progress;
        self.progressed.notify_waiters();
    }

    /// Waits a moment while the index is being opened, and if little is left to index, so that a script finds what it has just
    /// written.
    pub async fn settle(&self) {
        let opened = self.wait_while(|| matches!(self.state.read().0, State::Starting));
        let _ = tokio::time::timeout(MAX_OPENING, opened).await;
        // It is compared with the catalog as soon as it is open.
        let is_comparing = || matches!(*self.state.read(), (State::Open(_), IndexProgress { is_starting: true, .. }));
        let settled = async {
            self.wait_while(is_comparing).await;
            self.wait_while(|| (1..=MAX_AWAITED).contains(&self.waiting())).await;
        };
        let _ = tokio::time::timeout(MAX_WAIT, settled).await;
    }

    /// Number of sessions and live contexts that are not indexed yet, as far as is known.
    fn waiting(&self) -> u64 {
        self.progress().map_or(0, |state| if state.complete { 0 } else { state.total - state.indexed })
    }

    async fn wait_while(&self, is_waiting: impl Fn() -> bool) {
        loop {
            let progressed = self.progressed.notified();
            if !is_waiting() {
                return;
            }
            progressed.await;
        }
    }
}
