//! The audit log.

use std::sync::{Arc, OnceLock};

use chorus_base::error::Result;
use chorus_catalog::{
    AuditDecision, AuditEntry, AuditFilter, AuditHead, AuditLog, CatalogRead, CatalogWrite, ChainVerifier,
    MAX_AUDIT_PAGE_BYTES, MAX_AUDIT_PAGE_ROWS,
};
use chorus_journal::{from_nanos, to_nanos};
use chorus_redact::Redactor;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};
use uuid::Uuid;

use super::CatalogDb;
use crate::sqlite::StoreResult;

/// Rows that are verified in one transaction, between which other reads can run.
const ROWS_PER_CHUNK: usize = 2000;

const COLUMNS: &str = "id, at, agent_id, agent_name, turn_id, action, decision, rule, user, old, new, hash";

/// The table in SQLite. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct SqliteAuditLog {
    pub(super) db: CatalogDb,
    pub(super) listener: AuditListener,
    pub(super) redactor: Arc<Redactor>,
}

impl SqliteAuditLog {
    /// Runs `change` and appends a decision to the log, redacted, in the same commit, unless `change` returns false: then it
    /// has changed nothing. Returns what `change` returned.
    pub(super) fn append_if(
        &self,
        row: AuditDecision,
        change: impl FnOnce(&Connection) -> StoreResult<bool> + Send + 'static,
    ) -> CatalogWrite<bool> {
        let row = row.redacted(&self.redactor);
        let listener = self.listener.clone();
        let change = move |conn: &Connection| {
            if !change(conn)? {
                return Ok(None);
            }
            let head = newest_head(conn)?.unwrap_or(AuditHead::NONE).next(&row);
            insert(conn, &AuditEntry { id: head.id, row, hash: head.hash.to_vec() })?;
            Ok(Some(head))
        };
        let done = self.db.writer.submit_with_callback(change, move |head| {
            if let Some(head) = head {
                listener.notify(*head);
            }
        });
        Box::pin(async move { Ok(done.await?.is_some()) })
    }

    /// Returns number and hash of the newest row.
    pub(crate) async fn head(&self) -> Result<Option<AuditHead>> {
        self.db.read(newest_head).await
    }

    /// Returns whether the log has this row.
    pub(crate) async fn contains(&self, head: AuditHead) -> Result<bool> {
        let read = move |conn: &Connection| {
            let mut statement = conn.prepare_cached("SELECT 1 FROM audit_log WHERE id = ?1 AND hash = ?2")?;
            Ok(statement.exists(params![head.id, head.hash])?)
        };
        self.db.read(read).await
    }

    /// Calls `listener` for every row after its commit, in their order.
    pub(crate) fn on_row(&self, listener: impl Fn(AuditHead) + Send + Sync + 'static) {
        self.listener.set(listener);
    }
}

impl AuditLog for SqliteAuditLog {
    fn append(&self, row: AuditDecision) -> CatalogWrite<()> {
        let done = self.append_if(row, |_| Ok(true));
        Box::pin(async move { done.await.map(drop) })
    }

    fn page(&self, filter: AuditFilter) -> CatalogRead<'_, (Vec<AuditEntry>, bool)> {
        self.db.read(move |conn| read_page(conn, filter))
    }

    fn agents_named(&self, name: String) -> CatalogRead<'_, Vec<Uuid>> {
        self.db.read(move |conn| {
            let mut statement = conn.prepare_cached("SELECT DISTINCT agent_id FROM audit_log WHERE agent_name = ?1")?;
            let ids = statement.query_map([name], |row| row.get(0).map(Uuid::from_bytes))?;
            Ok(ids.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn verify(&self, known: Option<AuditHead>) -> CatalogRead<'_, ChainVerifier> {
        Box::pin(async move {
            let mut walk = ChainVerifier::new(known);
            loop {
                let (walked, more) = self.db.read(move |conn| verify_chunk(conn, walk)).await?;
                walk = walked;
                if !more {
                    return Ok(walk.finish());
                }
            }
        })
    }
}

type AuditCallback = dyn Fn(AuditHead) + Send + Sync;

/// Callback for every row of the audit log after its commit.
#[derive(Clone, Default)]
pub(super) struct AuditListener(Arc<OnceLock<Box<AuditCallback>>>);

impl AuditListener {
    fn set(&self, listener: impl Fn(AuditHead) + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(listener));
    }

    fn notify(&self, head: AuditHead) {
        if let Some(listener) = self.0.get() {
            listener(head);
        }
    }
}

impl std::fmt::Debug for AuditListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuditListener")
    }
}

pub(crate) fn insert(conn: &Connection, entry: &AuditEntry) -> StoreResult<()> {
    let row = &entry.row;
    conn.prepare_cached(&format!(
        "INSERT INTO audit_log ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
    ))?
    .execute(params![
        entry.id,
        to_nanos(row.at),
        row.agent.as_bytes(),
        row.agent_name,
        row.turn.map(|turn| *turn.as_bytes()),
        row.action,
        row.decision,
        row.rule,
        row.user,
        row.old,
        row.new,
        entry.hash,
    ])?;
    Ok(())
}

pub(crate) fn newest_head(conn: &Connection) -> StoreResult<Option<AuditHead>> {
    let head = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?));
    let newest = conn
        .prepare_cached("SELECT id, hash FROM audit_log ORDER BY id DESC LIMIT 1")?
        .query_row([], head)
        .optional()?;
    Ok(newest.map(|(id, hash)| AuditHead::from_row(id, hash)).transpose()?)
}

/// Calls `take` with the rows after number `after` until it returns false. Returns whether `take` stopped it.
pub(crate) fn for_each_after(
    conn: &Connection,
    after: i64,
    mut take: impl FnMut(AuditEntry) -> bool,
) -> StoreResult<bool> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM audit_log WHERE id > ?1 ORDER BY id"))?;
    let mut rows = statement.query([after])?;
    while let Some(row) = rows.next()? {
        if !take(read_entry(row)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read_entry(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    Ok(AuditEntry {
        id: row.get(0)?,
        row: AuditDecision {
            at: from_nanos(row.get(1)?),
            agent: Uuid::from_bytes(row.get(2)?),
            agent_name: row.get(3)?,
            turn: row.get::<_, Option<[u8; 16]>>(4)?.map(Uuid::from_bytes),
            action: row.get(5)?,
            decision: row.get(6)?,
            rule: row.get(7)?,
            user: row.get(8)?,
            old: row.get(9)?,
            new: row.get(10)?,
        },
        hash: row.get(11)?,
    })
}

fn verify_chunk(conn: &Connection, mut walk: ChainVerifier) -> StoreResult<(ChainVerifier, bool)> {
    let mut left = ROWS_PER_CHUNK;
    let more = for_each_after(conn, walk.head.id, |entry| {
        walk.check_row(&entry);
        left -= 1;
        left > 0 && walk.is_intact()
    })?;
    let more = more && walk.is_intact();
    if !walk.is_intact() {
        walk.rows = conn.query_row("SELECT count(*) FROM audit_log", [], |row| row.get(0))?;
    }
    Ok((walk, more))
}

fn read_page(conn: &Connection, filter: AuditFilter) -> StoreResult<(Vec<AuditEntry>, bool)> {
    let mut values = vec![Value::Integer(filter.after), Value::Integer(filter.since.map_or(i64::MIN, to_nanos))];
    values.extend(filter.agents.iter().map(|agent| Value::Blob(agent.as_bytes().to_vec())));
    let of = if filter.agents.is_empty() {
        String::new()
    } else {
        format!("AND agent_id IN ({})", vec!["?"; filter.agents.len()].join(", "))
    };
    let wanted = format!("FROM audit_log WHERE id > ? AND at >= ? {of}");
    if let Some(limit) = filter.limit {
        let first = format!("SELECT min(id) FROM (SELECT id {wanted} ORDER BY id DESC LIMIT {limit})");
        let first: Option<i64> = conn.query_row(&first, params_from_iter(&values), |row| row.get(0))?;
        let Some(first) = first else { return Ok((Vec::new(), false)) };
        values[0] = Value::Integer(first - 1);
    }
    let mut statement =
        conn.prepare(&format!("SELECT {COLUMNS} {wanted} ORDER BY id LIMIT {}", MAX_AUDIT_PAGE_ROWS + 1))?;
    let mut rows = statement.query(params_from_iter(&values))?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        if found.len() == MAX_AUDIT_PAGE_ROWS || bytes > MAX_AUDIT_PAGE_BYTES {
            return Ok((found, true));
        }
        let entry = read_entry(row)?;
        bytes += entry.page_bytes();
        found.push(entry);
    }
    Ok((found, false))
}
