//! Usage of conversations of other programs, as their transcripts record it. A call that several transcripts contain, for
//! example after a fork, counts for the session that was saved first.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use chorus_base::error::Result;
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::CatalogDb;
use super::usage::QUARTER_HOUR_NANOS;
use crate::journal::{from_nanos, to_nanos};
use crate::sqlite::StoreResult;

/// The model calls of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedUsage {
    /// Names of the models, as the program gives them.
    pub models: Vec<String>,
    /// Each call once.
    pub calls: Vec<ImportedCallRow>,
}

/// A model call of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImportedCallRow {
    /// The same in all transcripts that contain the call.
    pub key: u64,
    pub at: Timestamp,
    /// Index of the model.
    pub model: usize,
    pub sums: ImportedSums,
}

/// Sums over calls of other programs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ImportedSums {
    pub calls: u64,
    /// Tokens of the whole input, including those that were read from the cache or written to it.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// The cost that the programs recorded, in US dollars.
    pub cost: f64,
    /// Number of calls with a recorded cost.
    pub with_cost: u64,
    /// Number of calls that had more output tokens than were recorded.
    pub lower_bound: u64,
}

impl ImportedSums {
    /// Adds the sums of `other`.
    pub fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cost += other.cost;
        self.with_cost = self.with_cost.saturating_add(other.with_cost);
        self.lower_bound = self.lower_bound.saturating_add(other.lower_bound);
    }
}

impl ImportedUsage {
    /// Returns a hash of all calls.
    fn digest(&self) -> Vec<u8> {
        let mut hash = Sha256::new();
        for call in &self.calls {
            let sums = &call.sums;
            hash.update(call.key.to_le_bytes());
            hash.update(to_nanos(call.at).to_le_bytes());
            hash.update(self.models.get(call.model).map_or("", |model| model));
            for count in [sums.input, sums.output, sums.cache_read, sums.cache_write, sums.calls, sums.lower_bound] {
                hash.update(count.to_le_bytes());
            }
            hash.update(sums.cost.to_le_bytes());
        }
        hash.finalize()[..16].to_vec()
    }
}

/// By what the usage is divided, besides program and model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportedDivision {
    None,
    Project,
    QuarterHour,
}

/// Selects usage.
#[derive(Debug, Clone)]
pub struct ImportedUsageFilter {
    /// Empty means the sessions of all agents.
    pub agents: Vec<Uuid>,
    pub since: Option<Timestamp>,
    pub division: ImportedDivision,
}

/// Usage of one model in conversations of one program.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedUsageRow {
    pub program: String,
    pub project: Option<String>,
    /// The start of the quarter of an hour.
    pub at: Option<Timestamp>,
    pub model: String,
    pub sums: ImportedSums,
}

/// The tables of the usage of imported conversations.
#[derive(Debug, Clone)]
pub struct ImportedUsageTable {
    pub(super) db: CatalogDb,
}

impl ImportedUsageTable {
    /// Records the usage of a session, in place of what was recorded before.
    pub async fn record(&self, session: Uuid, usage: Arc<ImportedUsage>) -> Result<()> {
        let (of, digest) = (session, usage.digest());
        let is_known =
            self.db.reader.submit(move |conn| Ok(select_digest(conn, of)?.as_ref() == Some(&digest))).await?;
        if is_known || (usage.calls.is_empty() && !self.has_usage(session).await?) {
            return Ok(());
        }
        self.db.writer.submit(move |conn| record(conn, session, &usage)).await
    }

    async fn has_usage(&self, session: Uuid) -> Result<bool> {
        self.db.reader.submit(move |conn| Ok(select_digest(conn, session)?.is_some())).await
    }

    /// Deletes the usage of a session for good.
    pub fn delete(&self, session: Uuid) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| delete(conn, session))
    }

    /// Deletes the usage of all sessions of an agent for good.
    pub fn delete_of_agent(&self, agent: Uuid) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            conn.execute(
                "DELETE FROM imported_usage WHERE session_id IN (SELECT session_id FROM imported_calls WHERE agent_id = ?1)",
                [agent.as_bytes()],
            )?;
            conn.execute("DELETE FROM imported_calls WHERE agent_id = ?1", [agent.as_bytes()])?;
            Ok(())
        })
    }

    /// Returns whether there is any usage.
    pub async fn is_empty(&self) -> Result<bool> {
        self.db
            .reader
            .submit(|conn| Ok(!conn.prepare_cached("SELECT 1 FROM imported_calls LIMIT 1")?.exists([])?))
            .await
    }

    /// Returns sums by program and model, and by `division`. Leaves out the sessions in the trash.
    pub async fn sums(&self, filter: ImportedUsageFilter) -> Result<Vec<ImportedUsageRow>> {
        self.db.reader.submit(move |conn| select_sums(conn, &filter)).await
    }
}

fn select_digest(conn: &Connection, session: Uuid) -> StoreResult<Option<Vec<u8>>> {
    let mut statement = conn.prepare_cached("SELECT digest FROM imported_calls WHERE session_id = ?1")?;
    Ok(statement.query_row([session.as_bytes()], |row| row.get(0)).optional()?)
}

/// Deletes the usage of a session.
pub(super) fn delete(conn: &Connection, session: Uuid) -> StoreResult<()> {
    for table in ["imported_usage", "imported_calls"] {
        conn.prepare_cached(&format!("DELETE FROM {table} WHERE session_id = ?1"))?.execute([session.as_bytes()])?;
    }
    Ok(())
}

/// Records the usage of a session whose row exists.
pub(super) fn record(conn: &Connection, session: Uuid, usage: &ImportedUsage) -> StoreResult<()> {
    delete(conn, session)?;
    let Some(first) = usage.calls.first() else { return Ok(()) };
    let first = first.key.cast_signed();
    let counted_elsewhere = select_shared_keys(conn, session, first)?;
    let (mut keys, mut sums) = (Vec::with_capacity(usage.calls.len() * 8), BTreeMap::<_, ImportedSums>::new());
    for call in usage.calls.iter().filter(|call| !counted_elsewhere.contains(&call.key)) {
        keys.extend_from_slice(&call.key.to_le_bytes());
        sums.entry((call.model, to_nanos(call.at) / QUARTER_HOUR_NANOS)).or_default().add(&call.sums);
    }
    conn.prepare_cached(
        "INSERT INTO imported_calls (session_id, agent_id, first, digest, calls)
         VALUES (?1, (SELECT agent_id FROM sessions WHERE id = ?1), ?2, ?3, ?4)",
    )?
    .execute(params![session.as_bytes(), first, usage.digest(), keys])?;
    let mut insert = conn.prepare_cached(
        "INSERT INTO imported_usage (session_id, model, quarter_hour, calls, input, output, cache_read, cache_write, cost_usd,
             with_cost, lower_bound)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    for ((model, quarter_hour), sums) in sums {
        insert.execute(params![
            session.as_bytes(),
            usage.models.get(model).map_or("", |model| model),
            quarter_hour,
            sums.calls.cast_signed(),
            sums.input.cast_signed(),
            sums.output.cast_signed(),
            sums.cache_read.cast_signed(),
            sums.cache_write.cast_signed(),
            sums.cost,
            sums.with_cost.cast_signed(),
            sums.lower_bound.cast_signed(),
        ])?;
    }
    Ok(())
}

/// Returns the calls that count for other sessions of the same conversation, and for those with the same first call: forks.
fn select_shared_keys(conn: &Connection, session: Uuid, first: i64) -> StoreResult<HashSet<u64>> {
    let mut statement = conn.prepare_cached(
        "SELECT c.calls FROM imported_calls AS c WHERE c.session_id != ?1
             AND EXISTS (SELECT 1 FROM sessions WHERE id = c.session_id)
             AND (c.first = ?2 OR c.session_id IN (
                 SELECT other.id FROM sessions AS own JOIN sessions AS other
                     ON other.source_program = own.source_program AND other.source_conversation = own.source_conversation
                 WHERE own.id = ?1))",
    )?;
    let mut keys = HashSet::new();
    let mut rows = statement.query(params![session.as_bytes(), first])?;
    while let Some(row) = rows.next()? {
        let (calls, _) = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?.as_chunks::<8>();
        keys.extend(calls.iter().map(|key| u64::from_le_bytes(*key)));
    }
    Ok(keys)
}

fn select_sums(conn: &Connection, filter: &ImportedUsageFilter) -> StoreResult<Vec<ImportedUsageRow>> {
    let (project, at) = match filter.division {
        ImportedDivision::None => ("NULL", "NULL"),
        ImportedDivision::Project => ("s.project", "NULL"),
        ImportedDivision::QuarterHour => ("NULL", "u.quarter_hour"),
    };
    let mut values = Vec::new();
    let mut conditions = String::from("TRUE");
    if let Some(since) = filter.since {
        conditions.push_str(" AND u.quarter_hour >= ?");
        values.push(Value::Integer(to_nanos(since) / QUARTER_HOUR_NANOS));
    }
    if !filter.agents.is_empty() {
        conditions.push_str(&format!(" AND s.agent_id IN ({})", vec!["?"; filter.agents.len()].join(", ")));
        values.extend(filter.agents.iter().map(|agent| Value::Blob(agent.as_bytes().to_vec())));
    }
    let mut statement = conn.prepare(&format!(
        "SELECT coalesce(s.source_program, ''), {project}, {at}, u.model, total(u.calls), total(u.input), total(u.output),
                total(u.cache_read), total(u.cache_write), total(u.cost_usd), total(u.with_cost), total(u.lower_bound)
         FROM imported_usage AS u CROSS JOIN sessions AS s ON s.id = u.session_id
         WHERE {conditions} GROUP BY 1, 2, 3, 4"
    ))?;
    let rows = statement.query_map(params_from_iter(values), |row| {
        Ok(ImportedUsageRow {
            program: row.get(0)?,
            project: row.get(1)?,
            at: row.get::<_, Option<i64>>(2)?.map(|at| from_nanos(at.saturating_mul(QUARTER_HOUR_NANOS))),
            model: row.get(3)?,
            sums: ImportedSums {
                calls: count(row, 4)?,
                input: count(row, 5)?,
                output: count(row, 6)?,
                cache_read: count(row, 7)?,
                cache_write: count(row, 8)?,
                cost: row.get(9)?,
                with_cost: count(row, 10)?,
                lower_bound: count(row, 11)?,
            },
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Reads a sum. SQLite adds floats, because a sum of integers that is too large would be an error.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sums of token counts are exact")]
fn count(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, f64>(at)? as u64)
}
