//! The audit log: one row per decision about an action or change of an agent, each with the hash of the previous row.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::ErrorKind;
use chorus_redact::Redactor;
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};
use uuid::Uuid;

use super::CatalogDb;
use super::audit_chain::{self, AuditHead, ChainVerifier};
use crate::sqlite::StoreResult;

/// A decision to be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditDecision {
    pub at: Timestamp,
    pub agent: Uuid,
    /// Name of the agent at that time.
    pub agent_name: String,
    pub turn: Option<Uuid>,
    /// The requested action.
    pub action: String,
    /// `allow`, `ask`, `deny` for decisions of a rule; `approved`, `approved_always`, `refused`, `expired`, `withdrawn`
    /// for outcomes of approvals; `changed`, and `not_changed` if the change was not made after all; `lost` if rows are
    /// missing before this one.
    pub decision: String,
    /// The reason, in words for people.
    pub rule: String,
    /// The user on whose behalf the action was requested, or who decided.
    pub user: String,
    /// The value before (`old`) and after (`new`) a change.
    pub old: Option<String>,
    pub new: Option<String>,
}

/// A row of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub id: i64,
    pub row: AuditDecision,
    /// 32 bytes, unless somebody has changed it.
    pub hash: Vec<u8>,
}

/// Selects rows of the log.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Empty means all agents.
    pub agents: Vec<Uuid>,
    pub since: Option<Timestamp>,
    /// Only rows with a higher number.
    pub after: i64,
    /// Only the newest `limit` rows.
    pub limit: Option<u64>,
}

/// Limits of a page: rows, and bytes after which it ends.
const MAX_PAGE_ROWS: usize = 1000;
const MAX_PAGE_BYTES: usize = 1 << 20;

/// Rows that are verified in one transaction, between which other reads can run.
const ROWS_PER_CHUNK: usize = 2000;

const COLUMNS: &str = "id, at, agent_id, agent_name, turn_id, action, decision, rule, user, old, new, hash";

/// The audit log.
#[derive(Debug, Clone)]
pub struct AuditLog {
    pub(super) db: CatalogDb,
    pub(super) listener: audit_chain::AuditListener,
    pub(super) redactor: Arc<Redactor>,
}

impl AuditLog {
    /// Appends a decision to the log, redacted. The future completes once it is on the disk.
    pub fn append(&self, row: AuditDecision) -> impl Future<Output = Result<()>> + Send + use<> {
        let row = self.redact_row(row);
        let listener = self.listener.clone();
        let done =
            self.db.writer.submit_with_callback(move |conn| append(conn, &row), move |head| listener.notify(*head));
        async move { done.await.map(drop) }
    }

    /// Returns a page of the log, oldest row first, and whether there are more.
    pub async fn page(&self, filter: AuditFilter) -> Result<(Vec<AuditEntry>, bool)> {
        self.db.reader.submit(move |conn| read_page(conn, filter)).await
    }

    /// Returns the ids of agents that rows of the log call `name`, including destroyed ones.
    pub async fn agents_named(&self, name: String) -> Result<Vec<Uuid>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut statement =
                    conn.prepare_cached("SELECT DISTINCT agent_id FROM audit_log WHERE agent_name = ?1")?;
                let ids = statement
                    .query_map([name], |row| row.get(0).map(Uuid::from_bytes))?
                    .collect::<rusqlite::Result<_>>()?;
                Ok(ids)
            })
            .await
    }

    /// Verifies the whole hash chain. `head` is the audit anchor, which the log must contain.
    pub async fn verify(&self, head: Option<AuditHead>) -> Result<ChainVerifier> {
        let mut walk = ChainVerifier::new(head);
        loop {
            let (walked, more) = self.db.reader.submit(move |conn| verify_chunk(conn, walk)).await?;
            walk = walked;
            if !more {
                return Ok(walk.finish());
            }
        }
    }

    /// Returns number and hash of the newest row.
    pub async fn head(&self) -> Result<Option<AuditHead>> {
        self.db.reader.submit(newest_head).await
    }

    /// Returns whether the log has this row.
    pub async fn contains(&self, head: AuditHead) -> Result<bool> {
        self.db
            .reader
            .submit(move |conn| {
                Ok(conn
                    .prepare_cached("SELECT 1 FROM audit_log WHERE id = ?1 AND hash = ?2")?
                    .query_row(params![head.id, head.hash], |_| Ok(()))
                    .optional()?
                    .is_some())
            })
            .await
    }

    /// Calls `hear` for every row after its commit, in their order.
    pub(crate) fn on_row(&self, listener: impl Fn(AuditHead) + Send + Sync + 'static) {
        self.listener.set(listener);
    }

    pub(super) fn redact_row(&self, row: AuditDecision) -> AuditDecision {
        let clean = |text: String| self.redactor.redact_text(&text).into_owned();
        let (old, new) = (row.old.map(clean), row.new.map(clean));
        AuditDecision { action: clean(row.action), rule: clean(row.rule), old, new, ..row }
    }
}

/// Appends a row to the chain within the caller's transaction.
pub(super) fn append(conn: &Connection, row: &AuditDecision) -> StoreResult<AuditHead> {
    let before = newest_head(conn)?.unwrap_or(AuditHead::NONE);
    let id = before.id + 1;
    let hash = audit_chain::row_hash(&before.hash, id, row);
    insert(conn, &AuditEntry { id, row: row.clone(), hash: hash.to_vec() })?;
    Ok(AuditHead { id, hash })
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
    let Some((id, hash)) = newest else { return Ok(None) };
    let hash = hash.try_into().map_err(|hash: Vec<u8>| invalid_hash_error(id, hash.len()))?;
    Ok(Some(AuditHead { id, hash }))
}

/// Error for a newest row without a valid hash, to which nothing can be chained.
fn invalid_hash_error(id: i64, length: usize) -> Error {
    let what = format!("entry {id} of the audit log was changed: its hash has {length} bytes, not 32");
    Error::new(ErrorKind::StorageFailed, what).hint(
        "run `chorusctl audit verify`; until db/chorus.db is restored from a backup, all actions are denied \
         because they cannot be recorded",
    )
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
    let more = for_each_after(conn, walk.last_id(), |entry| {
        walk.check_row(&entry);
        left -= 1;
        left > 0 && walk.is_intact()
    })?;
    let more = more && walk.is_intact();
    if !walk.is_intact() {
        walk.set_row_count(conn.query_row("SELECT count(*) FROM audit_log", [], |row| row.get(0))?);
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
    let mut statement = conn.prepare(&format!("SELECT {COLUMNS} {wanted} ORDER BY id LIMIT {}", MAX_PAGE_ROWS + 1))?;
    let mut rows = statement.query(params_from_iter(&values))?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        if found.len() == MAX_PAGE_ROWS || bytes > MAX_PAGE_BYTES {
            return Ok((found, true));
        }
        let entry = read_entry(row)?;
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        bytes += entry.row.action.len() + entry.row.rule.len() + length(&entry.row.old) + length(&entry.row.new);
        found.push(entry);
    }
    Ok((found, false))
}
