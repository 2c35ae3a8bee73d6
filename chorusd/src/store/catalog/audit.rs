//! What agents were allowed, refused and changed: one row a decision, each with the hash of the one before it.

use chorus_proto::ErrorKind;
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};
use uuid::Uuid;

use super::Catalog;
use super::audit_chain::{self, AuditHead, Walk};
use crate::failure::{Failure, Result};
use crate::store::journal::{from_nanos, to_nanos};

/// A decision on its way into the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    pub at: Timestamp,
    pub agent: Uuid,
    /// At that time.
    pub agent_name: String,
    pub turn: Option<Uuid>,
    /// What was to be done.
    pub action: String,
    /// `allow`, `ask`, `deny` by a rule; `approved`, `approved_always`, `refused`, `expired`, `withdrawn` of what was asked;
    /// `changed`, and `not_changed` where that was not done after all; `lost`, where rows are missing before it.
    pub decision: String,
    /// Why, for a person.
    pub rule: String,
    /// On whose behalf, or who answered.
    pub user: String,
    /// Of a change: the value before and after.
    pub old: Option<String>,
    pub new: Option<String>,
}

/// A row of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub id: i64,
    pub row: Audit,
    /// 32 bytes, unless somebody has changed it.
    pub hash: Vec<u8>,
}

/// Which rows.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Empty: of every agent.
    pub agents: Vec<Uuid>,
    pub since: Option<Timestamp>,
    /// Only rows with a higher number.
    pub after: i64,
    /// Only the newest so many.
    pub limit: Option<u64>,
}

/// Rows of one page at most, and bytes after which it ends.
const PAGE: usize = 1000;
const PAGE_BYTES: usize = 1 << 20;

/// Rows that are walked before others may read.
const STRIDE: usize = 2000;

const COLUMNS: &str = "id, at, agent_id, agent_name, turn_id, action, decision, rule, user, old, new, hash";

impl Catalog {
    /// Writes a decision down; it is on the disk when this returns.
    /// Secrets stay out of it.
    pub fn audit(&self, row: Audit) -> impl Future<Output = Result<()>> + Send + use<> {
        let row = self.clean(row);
        let hear = self.hear_audit.clone();
        let done = self.writer.submit_telling(move |conn| append(conn, &row), move |head| hear.tell(*head));
        async move { done.await.map(drop) }
    }

    /// A page of the log, the oldest row first, and whether there are more.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn audit_rows(&self, filter: AuditFilter) -> Result<(Vec<AuditEntry>, bool)> {
        self.reader.submit(move |conn| page(conn, filter)).await
    }

    /// Agents that rows name so, destroyed ones too.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn audited(&self, name: String) -> Result<Vec<Uuid>> {
        self.reader
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

    /// Walks the whole chain. `head`: the newest row that is known from elsewhere.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn verify_audit(&self, head: Option<AuditHead>) -> Result<Walk> {
        let mut walk = Walk::new(head);
        loop {
            let (walked, more) = self.reader.submit(move |conn| stride(conn, walk)).await?;
            walk = walked;
            if !more {
                return Ok(walk.end());
            }
        }
    }

    /// The newest row.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn audit_head(&self) -> Result<Option<AuditHead>> {
        self.reader.submit(newest).await
    }

    /// Whether the log has this row.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn has_audit(&self, head: AuditHead) -> Result<bool> {
        self.reader
            .submit(move |conn| {
                Ok(conn
                    .prepare_cached("SELECT 1 FROM audit_log WHERE id = ?1 AND hash = ?2")?
                    .query_row(params![head.id, head.hash], |_| Ok(()))
                    .optional()?
                    .is_some())
            })
            .await
    }

    pub(super) fn clean(&self, row: Audit) -> Audit {
        let Some(redactor) = self.redactor.get() else { return row };
        let clean = |text: String| redactor.text(&text).into_owned();
        let (old, new) = (row.old.map(clean), row.new.map(clean));
        Audit { action: clean(row.action), rule: clean(row.rule), old, new, ..row }
    }
}

/// Adds a row to the chain, in whatever commit this is part of.
pub(super) fn append(conn: &Connection, row: &Audit) -> Result<AuditHead> {
    let before = newest(conn)?.unwrap_or(AuditHead::NONE);
    let id = before.id + 1;
    let hash = audit_chain::hash(&before.hash, id, row);
    insert(conn, &AuditEntry { id, row: row.clone(), hash: hash.to_vec() })?;
    Ok(AuditHead { id, hash })
}

pub(in crate::store) fn insert(conn: &Connection, entry: &AuditEntry) -> Result<()> {
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

pub(in crate::store) fn newest(conn: &Connection) -> Result<Option<AuditHead>> {
    let head = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?));
    let newest = conn
        .prepare_cached("SELECT id, hash FROM audit_log ORDER BY id DESC LIMIT 1")?
        .query_row([], head)
        .optional()?;
    let Some((id, hash)) = newest else { return Ok(None) };
    let hash = hash.try_into().map_err(|hash: Vec<u8>| no_hash(id, hash.len()))?;
    Ok(Some(AuditHead { id, hash }))
}

/// Nothing can be chained to a row that has no hash.
fn no_hash(id: i64, length: usize) -> Failure {
    let what = format!("row {id} of the audit log was changed: its hash has {length} bytes, not 32");
    Failure::new(ErrorKind::StorageFailed, what).hint(
        "`chorusctl audit verify` and `chorusctl doctor` say what does not fit; until a copy of db/chorus.db from before is put back, \
         nothing can be written down, and what cannot be is denied",
    )
}

/// Rows after a number, as long as `take` takes them; false: it took them all.
pub(in crate::store) fn each_after(
    conn: &Connection,
    after: i64,
    mut take: impl FnMut(AuditEntry) -> bool,
) -> Result<bool> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM audit_log WHERE id > ?1 ORDER BY id"))?;
    let mut rows = statement.query([after])?;
    while let Some(row) = rows.next()? {
        if !take(entry(row)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    Ok(AuditEntry {
        id: row.get(0)?,
        row: Audit {
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

fn stride(conn: &Connection, mut walk: Walk) -> Result<(Walk, bool)> {
    let mut left = STRIDE;
    let more = each_after(conn, walk.last(), |entry| {
        walk.step(&entry);
        left -= 1;
        left > 0 && walk.is_intact()
    })?;
    let more = more && walk.is_intact();
    if !walk.is_intact() {
        walk.count(conn.query_row("SELECT count(*) FROM audit_log", [], |row| row.get(0))?);
    }
    Ok((walk, more))
}

fn page(conn: &Connection, filter: AuditFilter) -> Result<(Vec<AuditEntry>, bool)> {
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
    let mut statement = conn.prepare(&format!("SELECT {COLUMNS} {wanted} ORDER BY id LIMIT {}", PAGE + 1))?;
    let mut rows = statement.query(params_from_iter(&values))?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        if found.len() == PAGE || bytes > PAGE_BYTES {
            return Ok((found, true));
        }
        let entry = entry(row)?;
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        bytes += entry.row.action.len() + entry.row.rule.len() + length(&entry.row.old) + length(&entry.row.new);
        found.push(entry);
    }
    Ok((found, false))
}
