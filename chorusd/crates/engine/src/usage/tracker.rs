//! Usage of the current day, kept in memory and rebuilt from the table `usage`.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::error::Result;
use chorus_clock::Clock;
use chorus_store::Store;
use jiff::tz::TimeZone;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard, broadcast};
use uuid::Uuid;

use super::limits::check_limits;
use super::{Calibration, Day, EmbeddingCall, Sample, Spending, UsageRow};

/// Tracks the usage of all agents.
pub struct UsageTracker {
    store: Arc<Store>,
    clock: Clock,
    zone: TimeZone,
    today: Mutex<Option<DailyTotals>>,
    /// Loaded from the table when it is first needed.
    calibration: Mutex<Option<Calibration>>,
    recorded: broadcast::Sender<Arc<UsageRow>>,
}

/// Calls that a subscriber may lag behind before it misses the oldest.
const RECORDED_CAPACITY: usize = 1024;

/// Maximum number of past calls to load for the calibration.
const MAX_CALIBRATION_CALLS: u32 = 500;

struct DailyTotals {
    day: Day,
    /// The newest row that was counted from the table.
    newest_row: i64,
    spent: HashMap<Uuid, Spending>,
}

impl std::fmt::Debug for UsageTracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Usage")
    }
}

impl UsageTracker {
    /// Creates a tracker whose days are those of `zone`.
    #[must_use]
    pub fn new(store: Arc<Store>, clock: Clock, zone: TimeZone) -> Self {
        let recorded = broadcast::Sender::new(RECORDED_CAPACITY);
        Self { store, clock, zone, today: Mutex::default(), calibration: Mutex::default(), recorded }
    }

    /// Subscribes to the calls that are recorded from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<UsageRow>> {
        self.recorded.subscribe()
    }

    /// Checks whether the agent may call a model now. Running calls are not counted yet, so that many at once may
    /// exceed a limit by what they use.
    ///
    /// # Errors
    /// `limit_reached`, or the error of reading the catalog.
    pub async fn check_limits(&self, agent: &AgentSettings) -> Result<()> {
        let today = self.lock_today().await?;
        let spent = today.spent.get(&agent.id).copied().unwrap_or_default();
        check_limits(&agent.limits, &agent.name, &spent, &today.day.end)
    }

    /// Records a call; it is durable when this returns. If the row cannot be written, the call counts until the next
    /// start.
    pub async fn record_call(&self, row: UsageRow) {
        let (agent, at) = (row.agent_id, row.at);
        if self.recorded.receiver_count() > 0 {
            let _ = self.recorded.send(Arc::new(row.clone()));
        }
        if let Some(calibration) = &mut *self.calibration.lock().await {
            calibration.add_sample(&row.model, Sample::from(&row));
        }
        let one = Spending {
            tokens: row.input.saturating_add(row.output),
            cost: row.cost_usd.unwrap_or(0.0),
            calls: 1,
            unpriced: u64::from(row.cost_usd.is_none()),
        };
        let number = self.store.catalog.usage.insert(row).await.unwrap_or_else(|failure| {
            tracing::warn!(%agent, %failure, "cannot record the usage of a model call");
            i64::MAX
        });
        let mut today = self.today.lock().await;
        if let Some(today) = today.as_mut().filter(|today| number > today.newest_row && today.day.contains(at)) {
            let spent = today.spent.entry(agent).or_default();
            spent.tokens = spent.tokens.saturating_add(one.tokens);
            spent.cost += one.cost;
            spent.calls += one.calls;
            spent.unpriced += one.unpriced;
        }
    }

    /// Records a request for vectors. It counts for no agent's limits.
    pub async fn record_embedding(&self, call: EmbeddingCall<'_>) {
        self.record_call(call.to_row(self.clock.now())).await;
    }

    /// Returns what each agent that called a model today has used.
    pub async fn today_totals(&self) -> Result<HashMap<Uuid, Spending>> {
        let today = self.lock_today().await?;
        Ok(today.spent.clone())
    }

    /// Returns how many tokens a model (`provider/model`) counts per estimated token, or `None` before its first call.
    pub async fn calibration_ratio(&self, model: &str) -> Result<Option<f64>> {
        let mut held = self.calibration.lock().await;
        let known = match held.take() {
            Some(known) => known,
            None => {
                let mut known = Calibration::default();
                for (model, estimated, input, cache_read) in
                    self.store.catalog.usage.estimated_calls(MAX_CALIBRATION_CALLS).await?
                {
                    known.add_sample(&model, Sample { estimated, input, cache_read });
                }
                known
            }
        };
        Ok(held.insert(known).ratio(model))
    }

    /// Returns the time zone of the days.
    #[must_use]
    pub fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Returns the totals of today, loaded from the table if those in memory are of another day. The lock is held while
    /// loading, so that no call is missed.
    async fn lock_today(&self) -> Result<MappedMutexGuard<'_, DailyTotals>> {
        let now = self.clock.now();
        let mut held = self.today.lock().await;
        let known = held.take().filter(|today| today.day.contains(now));
        let today = match known {
            Some(today) => today,
            None => {
                let day = Day::containing(now, self.zone.clone());
                let (spent, newest) = self.store.catalog.usage.spending_by_agent(day.start).await?;
                DailyTotals { day, newest_row: newest, spent }
            }
        };
        Ok(MutexGuard::map(held, |held| held.insert(today)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicI64, Ordering};

    use chorus_base::Ticks;
    use chorus_proto::ErrorKind;
    use futures_util::future::BoxFuture;
    use jiff::Timestamp;

    use super::*;
    use crate::usage::CallKind;
    use chorus_agent_core::UsageLimits;
    use chorus_base::Durability;
    use chorus_catalog::UsageFilter;
    use chorus_clock::TimeSource;

    /// A wall clock that the test sets, in seconds.
    #[derive(Clone)]
    struct ManualTime(Arc<AtomicI64>);

    impl ManualTime {
        fn at(time: &str) -> Self {
            let told = Self(Arc::default());
            told.set(time);
            told
        }

        fn set(&self, time: &str) {
            self.0.store(time.parse::<Timestamp>().unwrap().as_second(), Ordering::Relaxed);
        }
    }

    impl TimeSource for ManualTime {
        fn now(&self) -> Timestamp {
            Timestamp::from_second(self.0.load(Ordering::Relaxed)).unwrap()
        }

        fn ticks(&self) -> Ticks {
            Ticks(0)
        }

        fn sleep_until(&self, _: Ticks) -> BoxFuture<'_, ()> {
            Box::pin(std::future::pending())
        }
    }

    fn store(home: &Path) -> Arc<Store> {
        let _ = std::fs::create_dir(home.join(chorus_store::DB_DIR));
        let on_fatal: chorus_store::OnFatal = Arc::new(|failure| panic!("{failure}"));
        let redactor = Arc::new(chorus_redact::Redactor::new(|| [0; 32]));
        Arc::new(Store::open(home, Durability::Always, &on_fatal, Timestamp::UNIX_EPOCH, redactor).unwrap())
    }

    fn agent(daily_tokens: u64) -> AgentSettings {
        let limits = UsageLimits { daily_tokens, daily_cost: 0.0 };
        AgentSettings { id: Uuid::from_u128(1), name: "a".into(), dir: "/a".into(), limits, ..AgentSettings::default() }
    }

    fn row(at: Timestamp, input: u64, cost_usd: Option<f64>) -> UsageRow {
        UsageRow {
            at,
            agent_id: Uuid::from_u128(1),
            agent_name: "a".into(),
            context: None,
            conversation_id: None,
            turn_id: Some(Uuid::from_u128(2)),
            model: "p/m".into(),
            kind: CallKind::Turn,
            input,
            estimated: 0,
            output: 1,
            cache_read: 0,
            cache_write: 0,
            by_estimate: false,
            cost_usd,
            duration_ms: 1,
        }
    }

    #[tokio::test]
    async fn a_cap_holds_until_midnight_and_over_a_restart() {
        let home = tempfile::tempdir().unwrap();
        let time = ManualTime::at("2026-02-27T22:30:00Z");
        // The zone is an hour ahead: the day ends at 23:00 UTC.
        let zone = TimeZone::fixed(jiff::tz::offset(1));
        let usage = |store: &Arc<Store>| UsageTracker::new(store.clone(), Clock::new(time.clone()), zone.clone());
        let (first, a) = (store(home.path()), agent(20));
        let before = usage(&first);
        before.check_limits(&a).await.unwrap();
        before.record_call(row(time.now(), 9, Some(0.5))).await;
        before.check_limits(&a).await.unwrap();
        before.record_call(row(time.now(), 9, None)).await;
        let failure = before.check_limits(&a).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::LimitReached);
        assert!(failure.hint.unwrap().contains("2026-02-28 00:00"));
        before.check_limits(&agent(21)).await.unwrap();

        let after = usage(&first);
        assert_eq!(after.check_limits(&a).await.unwrap_err().kind, ErrorKind::LimitReached);
        let spent = after.today_totals().await.unwrap()[&a.id];
        assert_eq!(spent, Spending { tokens: 20, cost: 0.5, calls: 2, unpriced: 1 });
        for (now, may) in
            [("2026-02-27T22:59:59Z", false), ("2026-02-27T23:00:00Z", true), ("2026-02-27T22:00:00Z", false)]
        {
            time.set(now);
            assert_eq!(after.check_limits(&a).await.is_ok(), may, "{now}");
        }
    }

    #[tokio::test]
    async fn days_are_those_of_the_zone() {
        let home = tempfile::tempdir().unwrap();
        let store = store(home.path());
        for at in ["2026-02-27T18:29:00Z", "2026-02-27T18:30:00Z", "2026-02-28T18:29:59Z"] {
            store.catalog.usage.insert(row(at.parse().unwrap(), 9, None)).await.unwrap();
        }
        for (zone, due) in [
            (TimeZone::UTC, vec![("2026-02-28", 1), ("2026-02-27", 2)]),
            (TimeZone::posix("IST-5:30").unwrap(), vec![("2026-02-28", 2), ("2026-02-27", 1)]),
        ] {
            let filter = UsageFilter { agents: Vec::new(), since: None, zone, by_conversation: false };
            let days = store.catalog.usage.list_daily(filter).await.unwrap();
            let days: Vec<_> = days.iter().map(|row| (row.day.to_string(), row.sums.calls)).collect();
            assert_eq!(days, due.into_iter().map(|(day, calls)| (day.to_owned(), calls)).collect::<Vec<_>>());
        }
    }
}
