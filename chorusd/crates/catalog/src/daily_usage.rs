//! Sums of usage by day.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use chorus_journal::from_nanos;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use uuid::Uuid;

use crate::{QUARTER_HOUR_NANOS, UsageTotals};

/// Usage of one model by an agent, or by one of its conversations, on one day.
#[derive(Debug, Clone, PartialEq)]
pub struct DailyUsageRow {
    pub day: Date,
    pub agent_id: Uuid,
    /// The newest name of the agent.
    pub agent_name: String,
    /// The conversation, if they are divided by it; `None` for `main`.
    pub conversation_id: Option<Uuid>,
    pub model: String,
    pub sums: UsageTotals,
}

/// Adds up sums of quarters of an hour, which a database can make without knowing time zones, to days.
#[derive(Debug)]
pub struct DailyUsage {
    zone: TimeZone,
    days: BTreeMap<(Date, Uuid, String, Option<Uuid>), UsageTotals>,
    names: HashMap<Uuid, String>,
}

impl DailyUsage {
    /// Counts days in `zone`.
    #[must_use]
    pub fn new(zone: TimeZone) -> Self {
        Self { zone, days: BTreeMap::new(), names: HashMap::new() }
    }

    /// Adds the sums of a quarter, which is counted since 1970. The last name of an agent counts.
    pub fn add(
        &mut self,
        quarter: i64,
        (agent, name): (Uuid, String),
        conversation: Option<Uuid>,
        model: String,
        sums: &UsageTotals,
    ) {
        let at = from_nanos(quarter.saturating_mul(QUARTER_HOUR_NANOS));
        let day = at.to_zoned(self.zone.clone()).date();
        self.names.insert(agent, name);
        self.days.entry((day, agent, model, conversation)).or_default().add(sums);
    }

    /// Returns the rows: the newest day first, then by the agent's name, conversation and model.
    #[must_use]
    pub fn into_rows(self) -> Vec<DailyUsageRow> {
        let name = |agent: &Uuid| self.names.get(agent).cloned().unwrap_or_default();
        let rows = self.days.into_iter().map(|((day, agent_id, model, conversation_id), sums)| DailyUsageRow {
            day,
            agent_id,
            agent_name: name(&agent_id),
            conversation_id,
            model,
            sums,
        });
        let mut rows: Vec<_> = rows.collect();
        let order =
            |row: &DailyUsageRow| (Reverse(row.day), row.agent_name.clone(), row.conversation_id, row.model.clone());
        rows.sort_by_cached_key(order);
        rows
    }
}
