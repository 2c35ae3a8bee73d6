//! Rows of usage: one per model call.

use std::collections::{BTreeMap, HashMap};

use chorus_base::error::Result;
use chorus_journal::{from_nanos, to_nanos};
use chorus_session::stored_message::ContextNo;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};
use uuid::Uuid;

use super::CatalogDb;

/// Purpose of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    Turn,
    Summary,
    Acknowledgement,
    /// Report about a merge of two branches.
    MergeReport,
    Compaction,
    /// Vectors of messages or of a query, for the search by meaning.
    Embedding,
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
            Self::Embedding => "embedding",
        }
    }
}

/// One model call.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageRow {
    pub at: Timestamp,
    pub agent_id: Uuid,
    /// Name of the agent at that time.
    pub agent_name: String,
    pub context: Option<ContextNo>,
    /// `None` for `main`.
    pub conversation_id: Option<Uuid>,
    pub turn_id: Option<Uuid>,
    /// `provider/model`.
    pub model: String,
    pub kind: CallKind,
    /// Tokens of the whole input, including cached ones.
    pub input: u64,
    /// Token estimate of the input before the call; 0 if there was none.
    pub estimated: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Whether the token counts are estimates, in part or all, because the server did not report them.
    pub by_estimate: bool,
    /// `None` if no price is known.
    pub cost_usd: Option<f64>,
    pub duration_ms: u64,
}

/// Usage of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spending {
    /// Input and output.
    pub tokens: u64,
    /// In US dollars, of the calls with a known price.
    pub cost: f64,
    pub calls: u64,
    /// Number of calls without a known price.
    pub unpriced: u64,
}

/// Selects model calls.
#[derive(Debug, Clone)]
pub struct UsageFilter {
    /// Empty means all agents.
    pub agents: Vec<Uuid>,
    pub since: Option<Timestamp>,
    /// Time zone in which days are counted.
    pub zone: TimeZone,
    /// Divides the sums by conversation.
    pub by_conversation: bool,
}

/// Sums over model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UsageTotals {
    pub calls: u64,
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cost: f64,
    pub unpriced: u64,
    /// Number of calls with estimated token counts.
    pub by_estimate: u64,
    /// Number of calls of other programs that had more output tokens than those recorded.
    pub lower_bound: u64,
}

impl UsageTotals {
    /// Adds the sums of `other`.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cost += other.cost;
        self.unpriced += other.unpriced;
        self.by_estimate += other.by_estimate;
        self.lower_bound += other.lower_bound;
    }

    /// The cost, or `None` if there are calls but the price of none is known.
    #[must_use]
    pub fn known_cost(&self) -> Option<f64> {
        (self.unpriced < self.calls || self.calls == 0).then_some(self.cost)
    }
}

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

/// A quarter of an hour in nanoseconds: all time zones have offsets of whole quarters.
pub(super) const QUARTER_HOUR_NANOS: i64 = 15 * 60 * 1_000_000_000;

/// The table of model calls.
#[derive(Debug, Clone)]
pub struct UsageTable {
    pub(super) db: CatalogDb,
}

impl UsageTable {
    /// Inserts a row; returns its number.
    pub fn insert(&self, row: UsageRow) -> impl Future<Output = Result<i64>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            conn.prepare_cached(
                "INSERT INTO usage (at, agent_id, agent_name, context, turn_id, model, kind, input, output, cache_read,
                     cache_write, cost_usd, duration_ms, estimated, by_estimate, conversation_id)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
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
                row.conversation_id.map(Uuid::into_bytes),
            ])?;
            Ok(conn.last_insert_rowid())
        })
    }

    /// Returns the usage of each agent since `since`, and the number of the newest row that is counted.
    pub async fn spending_by_agent(&self, since: Timestamp) -> Result<(HashMap<Uuid, Spending>, i64)> {
        self.db
            .reader
            .submit(move |conn| {
                // Read this first and limit the sum to it, so that a row that is inserted in between is counted by the
                // caller only.
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

    /// Returns the newest `count` calls that have both a token estimate and a count by the server, oldest first: model,
    /// estimate, input, and the part of the input that was read from the cache. Leaves out those whose estimate was made
    /// by an earlier formula.
    pub async fn estimated_calls(&self, count: u32) -> Result<Vec<(String, u64, u64, u64)>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached(
                    "SELECT model, estimated, input, cache_read FROM usage
                     WHERE estimated > 0 AND by_estimate = 0 AND id > coalesce((
                         SELECT value FROM counters WHERE name = 'usage_estimated_by_length'), 0) ORDER BY id DESC LIMIT ?1",
                )?;
                let call = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
                let mut calls = statement.query_map([count], call)?.collect::<rusqlite::Result<Vec<_>>>()?;
                calls.reverse();
                Ok(calls)
            })
            .await
    }

    /// Returns the usage by day, agent and model, newest day first.
    pub async fn list_daily(&self, filter: UsageFilter) -> Result<Vec<DailyUsageRow>> {
        self.db.reader
            .submit(move |conn| {
                let mut values = vec![Value::Integer(filter.since.map_or(i64::MIN, to_nanos))];
                values.extend(filter.agents.iter().map(|agent| Value::Blob(agent.as_bytes().to_vec())));
                let of = if filter.agents.is_empty() {
                    String::new()
                } else {
                    format!("AND agent_id IN ({})", vec!["?"; filter.agents.len()].join(", "))
                };
                let conversation = if filter.by_conversation { "conversation_id" } else { "NULL" };
                // SQLite takes the name from the row with the highest number.
                let mut statement = conn.prepare(&format!(
                    "SELECT at / {QUARTER_HOUR_NANOS}, agent_id, agent_name, max(id), model, count(*), sum(input), sum(output),
                            sum(cache_read), total(cost_usd), count(*) - count(cost_usd), sum(by_estimate), {conversation}
                     FROM usage WHERE at >= ? {of} GROUP BY 1, 2, 5, 13 ORDER BY 1"
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
                        lower_bound: 0,
                    };
                    let conversation = row.get::<_, Option<[u8; 16]>>(12)?.map(Uuid::from_bytes);
                    days.entry((day, agent, row.get::<_, String>(4)?, conversation)).or_default().add(&sums);
                }
                let name = |agent: &Uuid| names.get(agent).cloned().unwrap_or_default();
                let mut days: Vec<_> = days
                    .into_iter()
                    .map(|((day, agent_id, model, conversation_id), sums)| DailyUsageRow {
                        day,
                        agent_id,
                        agent_name: name(&agent_id),
                        conversation_id,
                        model,
                        sums,
                    })
                    .collect();
                let order = |row: &DailyUsageRow| {
                    (std::cmp::Reverse(row.day), row.agent_name.clone(), row.conversation_id, row.model.clone())
                };
                days.sort_by_cached_key(order);
                Ok(days)
            })
            .await
    }

    /// Returns the ids of agents that called models under this name, including destroyed ones.
    pub async fn agents_named(&self, name: String) -> Result<Vec<Uuid>> {
        self.db
            .reader
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
