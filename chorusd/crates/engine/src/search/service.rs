//! The index of a home as its users see it: open or not, how much is indexed.

mod erasure;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_base::sync::{Mutex, RwLock};
use chorus_catalog::SessionChanges;
use chorus_proto::ErrorKind;
use chorus_proto::methods::search::SearchIndexState;
use chorus_search::{IndexOptions, SearchIndex};
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use self::erasure::Erasure;
use super::live_changes::LiveChanges;

/// Directory of the index below the home.
const INDEX_DIR: &str = "index";

/// Number of sessions and live contexts for which every search waits. If more wait, the daemon is busy, and a search waits only for what
/// its client has changed, or for all if the indexer rests and its last round ended longer ago than `MAX_AGE`.
const FEW_AWAITED: u64 = 4;
const MAX_AGE: Duration = Duration::from_secs(1);

/// How long a search waits.
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
    /// Number of those of which the index has nothing yet.
    pub missing: u64,
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

/// The rounds of the indexer. A round takes all changes that were noted before it begins.
#[derive(Debug, Default)]
struct Rounds {
    /// When the one that runs began.
    running: Option<Instant>,
    /// When the last one that is committed began.
    committed: Option<Instant>,
    /// When that one ended.
    ended: Option<Instant>,
    /// When changes were last taken, in a round or when the index was compared with the catalog.
    taken: Option<Instant>,
    /// When the changes were taken after which no file of the index holds deleted texts.
    erased: Option<Instant>,
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
    /// Notified when a search waits for what is not indexed yet.
    awaited: Notify,
    /// Notified when a search did not wait for it.
    passed_over: Notify,
    rounds: Mutex<Rounds>,
    erasure: Erasure,
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
            awaited: Notify::new(),
            passed_over: Notify::new(),
            rounds: Mutex::default(),
            erasure: Erasure::default(),
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
        let (live, new_live) = self.live_changes.counts();
        // Of sessions, nobody knows which of them are new.
        let missing = progress.missing + sessions + new_live;
        Some(SearchIndexState {
            complete: !progress.is_starting && progress.waiting + sessions + agents + live == 0,
            indexed: progress.indexed,
            total: progress.indexed.saturating_add(missing),
            messages,
        })
    }

    /// Returns the number of sessions and live contexts that are not indexed yet, or not as they are now, as far as is known.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let state = self.state.read();
        match &state.0 {
            State::Open(_) => state.1.waiting + self.session_changes.counts().0 + self.live_changes.counts().0,
            State::Starting | State::Failed(_) | State::Off => 0,
        }
    }

    pub(super) fn set_open(&self, index: Arc<SearchIndex>) {
        *self.rounds.lock() = Rounds::default();
        // Until it was compared with the catalog, nobody knows what is missing.
        *self.state.write() = (State::Open(index), IndexProgress { is_starting: true, ..IndexProgress::default() });
        self.progressed.notify_waiters();
    }

    /// Puts the same index, opened again, in the place of the one that is open.
    pub(super) fn replace_open(&self, index: Arc<SearchIndex>) {
        self.state.write().0 = State::Open(index);
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

    /// Waits until a search waits for what is not indexed yet.
    pub(super) async fn wait_until_awaited(&self) {
        self.awaited.notified().await;
    }

    /// Waits until a search has not waited for what is not indexed yet, so that others may find it.
    pub(super) async fn wait_until_passed_over(&self) {
        self.passed_over.notified().await;
    }

    /// Notes that a round begins, before it takes the changes.
    /// Returns the deleted sessions that have to leave the index in it.
    pub(super) fn begin_round(&self) -> Vec<Uuid> {
        self.rounds.lock().running = Some(Instant::now());
        self.take_erasure()
    }

    /// Notes that everything that the round has taken and had time for is committed.
    pub(super) fn end_round(&self) {
        let mut rounds = self.rounds.lock();
        rounds.committed = rounds.running.take();
        rounds.ended = Some(Instant::now());
    }

    /// Waits a moment while the index is being opened, and for changes that a search must find: those before `own_change`, the
    /// last one of whoever searches, or all of them if the indexer rests for long or if they are few, so that a script finds what
    /// another one has just written. Makes the indexer hurry.
    pub async fn settle(&self, own_change: Option<Instant>) {
        let opened = self.wait_while(|| matches!(self.state.read().0, State::Starting));
        let _ = tokio::time::timeout(MAX_OPENING, opened).await;
        // It is compared with the catalog as soon as it is open.
        let is_comparing = || matches!(*self.state.read(), (State::Open(_), IndexProgress { is_starting: true, .. }));
        let settled = async {
            self.wait_while(is_comparing).await;
            let begun = Instant::now();
            let required = own_change.max(self.rests_for_long(begun).then_some(begun));
            match self.must_wait(begun, required) {
                true => self.awaited.notify_one(),
                false if self.waiting() > 0 => self.passed_over.notify_one(),
                false => {}
            }
            self.wait_while(|| self.must_wait(begun, required)).await;
        };
        let _ = tokio::time::timeout(MAX_WAIT, settled).await;
    }

    /// Waits until everything that is there now is indexed, and reports the number of indexed conversations and that of all. Returns at
    /// once if the index cannot be used.
    pub async fn wait_until_complete(&self, mut report: impl FnMut(u64, u64)) {
        let begun = Instant::now();
        self.awaited.notify_one();
        self.wait_while(|| {
            let is_usable = matches!(self.state.read().0, State::Starting | State::Open(_));
            let Some(progress) = self.progress().filter(|_| is_usable) else { return false };
            let is_starting = self.state.read().1.is_starting;
            let is_waiting = is_starting || progress.indexed < progress.total || self.must_wait(begun, Some(begun));
            if is_waiting && progress.total > 0 {
                report(progress.indexed, progress.total);
            }
            is_waiting
        })
        .await;
    }

    /// Returns true if no round runs and the last one ended long ago: the next one is to come at once.
    fn rests_for_long(&self, now: Instant) -> bool {
        let rounds = self.rounds.lock();
        rounds.running.is_none() && rounds.ended.is_none_or(|ended| now.duration_since(ended) > MAX_AGE)
    }

    /// Returns true if a search that began at `begun` must wait: for changes before `required`, or for all if they are few.
    fn must_wait(&self, begun: Instant, required: Option<Instant>) -> bool {
        let waiting = self.waiting();
        let required = if waiting <= FEW_AWAITED { Some(begun) } else { required };
        waiting > 0 && self.rounds.lock().committed < required
    }

    async fn wait_while(&self, mut is_waiting: impl FnMut() -> bool) {
        loop {
            let progressed = self.progressed.notified();
            if !is_waiting() {
                return;
            }
            progressed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use chorus_session::conversation::ConversationKey;
    use futures_util::FutureExt as _;
    use uuid::Uuid;

    use super::*;
    use crate::search::live_changes::Novelty;

    /// A service with an index that was compared with the catalog.
    struct Fixture {
        service: SearchService,
        live_changes: Arc<LiveChanges>,
        _dir: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let (dir, live_changes) = (tempfile::tempdir().unwrap(), Arc::<LiveChanges>::default());
            let options = IndexOptions::new("english", false);
            let settings = SearchSettings { is_enabled: true, tool_results: false, options };
            let service = SearchService::new(dir.path(), settings, Arc::default(), live_changes.clone());
            let (index, _) = SearchIndex::open(service.dir(), options).unwrap();
            service.set_open(Arc::new(index));
            let fixture = Self { service, live_changes, _dir: dir };
            fixture.report(0);
            fixture
        }

        /// Says that so many live contexts are in the index, and nothing waits but the changes.
        fn report(&self, indexed: u64) {
            self.service.set_progress(IndexProgress { indexed, ..IndexProgress::default() });
        }

        /// Messages in so many live contexts.
        fn change(&self, conversations: u128) {
            for number in 0..conversations {
                self.live_changes.note(ConversationKey::main(Uuid::from_u128(number)), Novelty::Changed);
            }
        }

        /// Indexes what has changed.
        fn run_round(&self) {
            self.service.begin_round();
            self.live_changes.take();
            self.service.end_round();
        }

        /// Returns true if a search finds what it must without a wait.
        fn finds_all(&self, last_change: Option<Instant>) -> bool {
            self.service.settle(last_change).now_or_never().is_some()
        }

        /// Returns true if a search waits for the next round, and if one only wants it soon.
        fn hurries(&self) -> (bool, bool) {
            let is_awaited = self.service.wait_until_awaited().now_or_never().is_some();
            (is_awaited, self.service.wait_until_passed_over().now_or_never().is_some())
        }
    }

    async fn pass(time: Duration) -> Instant {
        tokio::time::advance(time).await;
        Instant::now()
    }

    const MOMENT: Duration = Duration::from_millis(10);

    /// An erasure that is requested while a round runs is not in that round.
    #[tokio::test(start_paused = true)]
    async fn an_erasure_during_a_round_makes_another_one_begin() {
        let fixture = Fixture::new();
        let (service, limit) = (&fixture.service, Duration::from_secs(10));
        pass(MOMENT).await;
        assert!(service.begin_round().is_empty());
        pass(MOMENT).await;
        let erase = service.erase(Uuid::from_u128(1), limit);
        tokio::pin!(erase);
        assert!(erase.as_mut().now_or_never().is_none());
        service.end_round();
        service.note_erased();
        fixture.report(0);
        assert!(erase.as_mut().now_or_never().is_none(), "that round has not taken it");
        assert!(service.wait_until_erasure().now_or_never().is_some(), "another one is wanted");
        assert_eq!(service.begin_round(), [Uuid::from_u128(1)]);
        service.end_round();
        service.note_erased();
        fixture.report(0);
        assert_eq!(erase.now_or_never(), Some(true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_among_many_busy_conversations_waits_for_its_own_change_only() {
        let fixture = Fixture::new();
        let connected = pass(MOMENT).await;
        fixture.change(30);
        assert!(!fixture.finds_all(Some(connected)), "what there was when the client connected may be its own");
        assert_eq!(fixture.hurries(), (true, false));
        pass(MOMENT).await;
        fixture.run_round();
        pass(MOMENT).await;
        fixture.change(30);
        assert!(fixture.finds_all(Some(connected)), "the changes of others are in the next round");
        assert!(fixture.finds_all(None));
        assert_eq!(fixture.hurries(), (false, true));
        let own_change = pass(MOMENT).await;
        assert!(!fixture.finds_all(Some(own_change)));
        // A round that began before it may not have taken it.
        fixture.service.begin_round();
        let later_change = pass(MOMENT).await;
        fixture.service.end_round();
        assert!(fixture.finds_all(Some(own_change)));
        assert!(!fixture.finds_all(Some(later_change)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_waits_for_a_few_changes_of_others_and_if_the_indexer_rests() {
        let fixture = Fixture::new();
        fixture.run_round();
        pass(MOMENT).await;
        fixture.change(u128::from(FEW_AWAITED));
        assert!(!fixture.finds_all(None), "another script may have written them");
        fixture.change(30);
        assert!(fixture.finds_all(None));
        pass(MAX_AGE).await;
        assert!(!fixture.finds_all(None), "the index is old");
        fixture.service.begin_round();
        assert!(fixture.finds_all(None), "it is being written, however long that takes");
        pass(MAX_AGE).await;
        fixture.service.end_round();
        assert!(fixture.finds_all(None), "the next round begins soon");
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_that_waits_ends_with_the_round_or_after_a_moment() {
        let fixture = Fixture::new();
        let own_change = pass(MOMENT).await;
        fixture.change(30);
        let begun = Instant::now();
        fixture.service.settle(Some(own_change)).await;
        assert_eq!(begun.elapsed(), MAX_WAIT, "nobody indexes");
        let mut search = Box::pin(fixture.service.settle(Some(own_change)));
        assert!(search.as_mut().now_or_never().is_none());
        pass(MOMENT).await;
        fixture.run_round();
        fixture.change(30);
        fixture.report(30);
        assert!(search.now_or_never().is_some());
    }

    #[test]
    fn conversations_that_go_on_are_not_missing() {
        let fixture = Fixture::new();
        fixture.report(30);
        fixture.change(30);
        let state = fixture.service.progress().unwrap();
        assert_eq!((state.complete, state.indexed, state.total, fixture.service.waiting()), (false, 30, 30, 30));
        assert_eq!(state.percent_indexed(), None);
        fixture.live_changes.note(ConversationKey::main(Uuid::from_u128(99)), Novelty::New);
        fixture.live_changes.note(ConversationKey::main(Uuid::from_u128(99)), Novelty::Changed);
        let state = fixture.service.progress().unwrap();
        assert_eq!((state.indexed, state.total, fixture.service.waiting()), (30, 31, 31));
    }

    #[test]
    fn an_index_that_was_opened_again_keeps_the_progress() {
        let fixture = Fixture::new();
        let before = fixture.service.index().unwrap();
        fixture.service.replace_open(Arc::new(before.reopen().unwrap()));
        let after = fixture.service.index().unwrap();
        assert!(!Arc::ptr_eq(&before, &after));
        assert!(fixture.service.progress().is_some_and(|state| state.complete), "its progress is that of before");
    }
}
