//! What was used today, counted in memory from the table.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};
use uuid::Uuid;

use super::{Day, Spent, UsageRow};
use crate::agent::Facts;
use crate::clock::Clock;
use crate::failure::Result;
use crate::store::Store;

/// The accounts of all agents.
pub struct Usage {
    store: Arc<Store>,
    clock: Clock,
    zone: TimeZone,
    today: Mutex<Option<Today>>,
}

struct Today {
    day: Day,
    /// The newest row that was counted from the table.
    newest: i64,
    spent: HashMap<Uuid, Spent>,
}

impl std::fmt::Debug for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Usage")
    }
}

impl Usage {
    /// Accounts whose days are those of `zone`.
    #[must_use]
    pub fn new(store: Arc<Store>, clock: Clock, zone: TimeZone) -> Self {
        Self { store, clock, zone, today: Mutex::default() }
    }

    /// Whether the agent may call a model now. Calls that are under way are not counted yet: many at once may go past a
    /// cap by what they use.
    ///
    /// # Errors
    /// `limit_reached`, or a database that cannot be read.
    pub async fn may_call(&self, agent: &Facts) -> Result<()> {
        let today = self.today().await?;
        let spent = today.spent.get(&agent.id).copied().unwrap_or_default();
        agent.limits.check(&agent.name, &spent, &today.day.end)
    }

    /// Notes a call; durable when this returns. One that cannot be written counts until the next start.
    pub async fn note(&self, row: UsageRow) {
        let (agent, at) = (row.agent_id, row.at);
        let one = Spent {
            tokens: row.input.saturating_add(row.output),
            cost: row.cost_usd.unwrap_or(0.0),
            calls: 1,
            unpriced: u64::from(row.cost_usd.is_none()),
        };
        let number = self.store.catalog.add_usage(row).await.unwrap_or_else(|failure| {
            tracing::warn!(%agent, %failure, "what a call of a model used cannot be written");
            i64::MAX
        });
        let mut today = self.today.lock().await;
        if let Some(today) = today.as_mut().filter(|today| number > today.newest && today.day.has(at)) {
            let spent = today.spent.entry(agent).or_default();
            spent.tokens = spent.tokens.saturating_add(one.tokens);
            spent.cost += one.cost;
            spent.calls += one.calls;
            spent.unpriced += one.unpriced;
        }
    }

    /// What each agent that called a model today has used.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn spent_today(&self) -> Result<HashMap<Uuid, Spent>> {
        let today = self.today().await?;
        Ok(today.spent.clone())
    }

    /// Whose days are meant.
    #[must_use]
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Today, read from the table where another day is in memory. The lock is held over the reading, so that no call is
    /// counted by neither.
    async fn today(&self) -> Result<MappedMutexGuard<'_, Today>> {
        let now = self.clock.now();
        let mut held = self.today.lock().await;
        let known = held.take().filter(|today| today.day.has(now));
        let today = match known {
            Some(today) => today,
            None => {
                let day = Day::of(now, self.zone.clone());
                let (spent, newest) = self.store.catalog.spent(day.start).await?;
                Today { day, newest, spent }
            }
        };
        Ok(MutexGuard::map(held, |held| held.insert(today)))
    }
}
