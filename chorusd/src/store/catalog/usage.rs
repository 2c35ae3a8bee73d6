//! What calls of models used: one row a call.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};
use uuid::Uuid;

use super::Catalog;
use crate::error::Result;
use crate::message::ContextNo;
use crate::store::journal::{from_nanos, to_nanos};

/// What a model was called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    Turn,
    Summary,
    Acknowledgement,
    /// Of two lines that come together.
    MergeReport,
    Compaction,
}

impl CallKind {
    /// The word in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Summary => "summary",
            Self::Acknowledgement => "acknowledgement",
            Self::MergeReport => "account",
            Self::Compaction => "compaction",
        }
    }
}

/// One call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageRow {
    pub at: Timestamp,
    pub agent_id: Uuid,
    /// At that time.
    pub agent_name: String,
    pub context: Option<ContextNo>,
    pub turn_id: Option<Uuid>,
    /// `provider/model`.
    pub model: String,
    pub kind: CallKind,
    /// Tokens of the whole input, cached ones included.
    pub input: u64,
    /// What the input was estimated at before the call; 0: it was not.
    pub estimated: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// The tokens are estimated, in part or all: the server had not counted them.
    pub by_estimate: bool,
    /// `None`: no price is known.
    pub cost_usd: Option<f64>,
    pub duration_ms: u64,
}

/// What an agent has used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spending {
    /// In and out.
    pub tokens: u64,
    /// In US dollars, of the calls whose price is known.
    pub cost: f64,
    pub calls: u64,
    /// Calls whose price is not known.
    pub unpriced: u64,
}

/// Which calls.
#[derive(Debug, Clone)]
pub struct UsageFilter {
    /// Empty: of every agent.
    pub agents: Vec<Uuid>,
    pub since: Option<Timestamp>,
    /// Whose days.
    pub zone: TimeZone,
}

/// Calls counted together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UsageTotals {
    pub calls: u64,
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cost: f64,
    pub unpriced: u64,
    /// Calls whose tokens are estimated.
    pub by_estimate: u64,
}

impl UsageTotals {
    /// Counts those of another, too.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cost += other.cost;
        self.unpriced += other.unpriced;
        self.by_estimate += other.by_estimate;
    }

    /// The cost, where the price of any call is known.
    #[must_use]
    pub fn known_cost(&self) -> Option<f64> {
        (self.unpriced < self.calls || self.calls == 0).then_some(self.cost)
    }
}

/// The calls of an agent by one model on one day.
#[derive(Debug, Clone, PartialEq)]
pub struct DailyUsageRow {
    pub day: Date,
    pub agent_id: Uuid,
    /// The newest name.
    pub agent_name: String,
    pub model: String,
    pub sums: UsageTotals,
}

/// Every time zone is ahead or behind by whole quarters of an hour.
const QUARTER_HOUR_NANOS: i64 = 15 * 60 * 1_000_000_000;

impl Catalog {
    /// Adds a call; answers the number of its row.
    pub fn insert_usage(&self, row: UsageRow) -> impl Future<Output = Result<i64>> + Send + use<> {
        self.writer.submit(move |conn| {
            conn.prepare_cached(
                "INSERT INTO usage (at, agent_id, agent_name, context, turn_id, model, kind, input, output, cache_read,
                     cache_write, cost_usd, duration_ms, estimated, by_estimate)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            )?
            .execute(params![
                to_nanos(row.at),
                row.agent_id.as_bytes(),
                row.agent_name,
                row.context.map(|context| context.0),
                row.turn_id.map(|id| id.as_bytes().to_vec()),
                row.model,
                row.kind.as_str(),
                row.input,
                row.output,
                row.cache_read,
                row.cache_write,
                row.cost_usd,
                row.duration_ms,
                row.estimated,
                row.by_estimate,
            ])?;
            Ok(conn.last_insert_rowid())
        })
    }

    /// What each agent has used since then, and the number of the newest row: those after it are not counted.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn spending_by_agent(&self, since: Timestamp) -> Result<(HashMap<Uuid, Spending>, i64)> {
        self.reader
            .submit(move |conn| {
                // First: what comes between the two statements is counted by both, and not by neither.
                let newest = conn.query_row("SELECT coalesce(max(id), 0) FROM usage", [], |row| row.get(0))?;
                let mut statement = conn.prepare_cached(
                    "SELECT agent_id, sum(input + output), total(cost_usd), count(*), count(*) - count(cost_usd)
                     FROM usage WHERE at >= ?1 AND id <= ?2 GROUP BY agent_id",
                )?;
                let spent = |row: &Row<'_>| {
                    let spent =
                        Spending { tokens: row.get(1)?, cost: row.get(2)?, calls: row.get(3)?, unpriced: row.get(4)? };
                    Ok((Uuid::from_bytes(row.get(0)?), spent))
                };
                let all = statement.query_map(params![to_nanos(since), newest], spent)?;
                Ok((all.collect::<rusqlite::Result<_>>()?, newest))
            })
            .await
    }

    /// The newest `count` calls that were estimated before and counted by their servers, the oldest of them first: model, estimate, input, and what of it
    /// was read from the cache.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn estimated_calls(&self, count: u32) -> Result<Vec<(String, u64, u64, u64)>> {
        self.reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached(
                    "SELECT model, estimated, input, cache_read FROM usage
                     WHERE estimated > 0 AND by_estimate = 0 ORDER BY id DESC LIMIT ?1",
                )?;
                let call = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
                let mut calls = statement.query_map([count], call)?.collect::<rusqlite::Result<Vec<_>>>()?;
                calls.reverse();
                Ok(calls)
            })
            .await
    }

    /// The calls by day, agent and model, the newest day first.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn usage(&self, filter: UsageFilter) -> Result<Vec<DailyUsageRow>> {
        self.reader
            .submit(move |conn| {
                let mut values = vec![Value::Integer(filter.since.map_or(i64::MIN, to_nanos))];
                values.extend(filter.agents.iter().map(|agent| Value::Blob(agent.as_bytes().to_vec())));
                let of = if filter.agents.is_empty() {
                    String::new()
                } else {
                    format!("AND agent_id IN ({})", vec!["?"; filter.agents.len()].join(", "))
                };
                // The name is that of the row with the highest number.
                let mut statement = conn.prepare(&format!(
                    "SELECT at / {QUARTER_HOUR_NANOS}, agent_id, agent_name, max(id), model, count(*), sum(input), sum(output),
                            sum(cache_read), total(cost_usd), count(*) - count(cost_usd), sum(by_estimate)
                     FROM usage WHERE at >= ? {of} GROUP BY 1, 2, 5 ORDER BY 1"
                ))?;
                let (mut days, mut names) = (BTreeMap::<_, UsageTotals>::new(), HashMap::new());
                let mut rows = statement.query(params_from_iter(values))?;
                while let Some(row) = rows.next()? {
                    let at = from_nanos(row.get::<_, i64>(0)?.saturating_mul(QUARTER_HOUR_NANOS));
                    let agent = Uuid::from_bytes(row.get(1)?);
                    let day = at.to_zoned(filter.zone.clone()).date();
                    names.insert(agent, row.get::<_, String>(2)?);
                    let sums = UsageTotals {
                        calls: row.get(5)?,
                        input: row.get(6)?,
                        output: row.get(7)?,
                        cache_read: row.get(8)?,
                        cost: row.get(9)?,
                        unpriced: row.get(10)?,
                        by_estimate: row.get(11)?,
                    };
                    days.entry((day, agent, row.get::<_, String>(4)?)).or_default().add(&sums);
                }
                let name = |agent: &Uuid| names.get(agent).cloned().unwrap_or_default();
                let mut days: Vec<_> = days
                    .into_iter()
                    .map(|((day, agent_id, model), sums)| DailyUsageRow {
                        day,
                        agent_id,
                        agent_name: name(&agent_id),
                        model,
                        sums,
                    })
                    .collect();
                let order = |row: &DailyUsageRow| (std::cmp::Reverse(row.day), row.agent_name.clone(), row.model.clone());
                days.sort_by_cached_key(order);
                Ok(days)
            })
            .await
    }

    /// Agents that called models under this name, destroyed ones too.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn agents_with_usage_named(&self, name: String) -> Result<Vec<Uuid>> {
        self.reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached("SELECT DISTINCT agent_id FROM usage WHERE agent_name = ?1")?;
                let ids = statement
                    .query_map([name], |row| row.get(0).map(Uuid::from_bytes))?
                    .collect::<rusqlite::Result<_>>()?;
                Ok(ids)
            })
            .await
    }
}
