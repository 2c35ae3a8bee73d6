//! Finds sessions by their id, the newest ones, and what neighbors them.

use std::collections::HashMap;

use chorus_base::error::{Error, Result};
use chorus_catalog::{LineageRow, MAX_SESSIONS_SEARCHED, SessionName, SessionRow, ShortId};
use chorus_journal::to_nanos;
use chorus_session::conversation::ConversationKey;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::CatalogDb;
use super::session_rows::{COLUMNS, read_optional, read_sessions};

/// The next lower and the next higher id of a session.
pub(super) const NEIGHBOURS_OF: &str = "SELECT (SELECT id FROM sessions WHERE id < $1 ORDER BY id DESC LIMIT 1),
     (SELECT id FROM sessions WHERE id > $1 ORDER BY id LIMIT 1)";

/// Reads the short id of a session from the columns of its neighbors, the first being `first`.
pub(super) fn read_short_id(id: Uuid, row: &Row, first: usize) -> ShortId {
    let neighbours: [Option<Uuid>; 2] = [row.get(first), row.get(first + 1)];
    ShortId::new(id, neighbours.into_iter().flatten())
}

pub(super) async fn short_ids(db: &CatalogDb, ids: Vec<Uuid>) -> Result<Vec<String>> {
    let sql = "SELECT wanted.id, (SELECT id FROM sessions WHERE id < wanted.id ORDER BY id DESC LIMIT 1),
             (SELECT id FROM sessions WHERE id > wanted.id ORDER BY id LIMIT 1)
         FROM unnest($1::uuid[]) WITH ORDINALITY AS wanted (id, place) ORDER BY wanted.place";
    let rows = db.read(sql, &[&ids]).await?;
    Ok(rows.iter().map(|row| read_short_id(row.get(0), row, 1).text).collect())
}

/// Returns the sessions with these ids, in the order of the ids.
pub(super) async fn get_all(db: &CatalogDb, ids: Vec<Uuid>) -> Result<Vec<SessionRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM unnest($1::uuid[]) WITH ORDINALITY AS wanted (id, place)
             CROSS JOIN LATERAL (SELECT * FROM sessions WHERE id = wanted.id OFFSET 0) s ORDER BY wanted.place"
    );
    read_sessions(&db.read(&sql, &[&ids]).await?)
}

pub(super) async fn nth_newest(db: &CatalogDb, conversation: ConversationKey, n: u64) -> Result<Option<SessionRow>> {
    // No table has more rows.
    let Ok(n) = i64::try_from(n) else { return Ok(None) };
    let sql = format!(
        "SELECT {COLUMNS} FROM (
             SELECT id FROM sessions WHERE agent_id = $1 AND conversation_id = $2
             ORDER BY place DESC, serial DESC LIMIT 1 OFFSET $3) page JOIN sessions s ON s.id = page.id"
    );
    Ok(read_sessions(&db.read(&sql, &[&conversation.agent, &conversation.id, &n]).await?)?.pop())
}

/// Condition for the agent's session names that are `base`, or start with it and `-`.
fn has_base(agent: &str, base: &str) -> String {
    format!(
        "SELECT session_id FROM sessions WHERE agent_id = {agent} AND session_id = {base}
         UNION ALL SELECT session_id FROM sessions
             WHERE agent_id = {agent} AND session_id >= {base} || '-' AND session_id <= {base} || '.'"
    )
}

pub(super) async fn names_with_base(db: &CatalogDb, agent: Uuid, base: String) -> Result<Vec<String>> {
    let rows = db.read(&has_base("$1", "$2::text"), &[&agent, &base]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

pub(super) async fn newest_and_names(
    db: &CatalogDb,
    conversation: ConversationKey,
    base: String,
) -> Result<(Option<SessionRow>, Vec<String>)> {
    let names = has_base("$1", "$3::text");
    let sql = format!(
        "SELECT ARRAY ({names}), {COLUMNS} FROM (SELECT) AS one LEFT JOIN LATERAL (
             SELECT * FROM sessions WHERE agent_id = $1 AND conversation_id = $2
             ORDER BY place DESC, serial DESC LIMIT 1) s ON true"
    );
    let rows = db.read(&sql, &[&conversation.agent, &conversation.id, &base]).await?;
    let row = rows.first().ok_or_else(|| Error::internal("PostgreSQL returned no row"))?;
    Ok((read_optional(row, 1)?, row.get(0)))
}

pub(super) async fn newest_of_each(db: &CatalogDb, agents: Vec<Uuid>) -> Result<Vec<Option<SessionRow>>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM unnest($1::uuid[]) WITH ORDINALITY AS wanted (agent, place)
             LEFT JOIN LATERAL (SELECT * FROM sessions WHERE agent_id = wanted.agent
                 ORDER BY place DESC, serial DESC LIMIT 1) s ON true
         ORDER BY wanted.place"
    );
    db.read(&sql, &[&agents]).await?.iter().map(|row| read_optional(row, 0)).collect()
}

pub(super) async fn newest_of_conversations(
    db: &CatalogDb,
    conversations: Vec<ConversationKey>,
) -> Result<Vec<Option<SessionRow>>> {
    let (agents, ids): (Vec<Uuid>, Vec<Uuid>) = conversations.iter().map(|key| (key.agent, key.id)).unzip();
    let sql = format!(
        "SELECT {COLUMNS} FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS wanted (agent, conversation, place)
             LEFT JOIN LATERAL (SELECT * FROM sessions
                 WHERE agent_id = wanted.agent AND conversation_id = wanted.conversation
                 ORDER BY place DESC, serial DESC LIMIT 1) s ON true
         ORDER BY wanted.place"
    );
    db.read(&sql, &[&agents, &ids]).await?.iter().map(|row| read_optional(row, 0)).collect()
}

fn parse_header<T: DeserializeOwned>(header: &str) -> Result<T> {
    serde_json::from_str(header)
        .map_err(|e| Error::internal(format!("the header of a session in PostgreSQL cannot be read: {e}")))
}

pub(super) async fn lineage(db: &CatalogDb, agents: Vec<Uuid>) -> Result<Vec<LineageRow>> {
    let sql = "SELECT header, corrupt FROM sessions WHERE agent_id = ANY ($1)";
    let rows = db.read(sql, &[&agents]).await?;
    let parse = |row: &Row| Ok(LineageRow { corrupt: row.get(1), ..parse_header(row.get(0))? });
    rows.iter().map(parse).collect()
}

pub(super) async fn names(db: &CatalogDb, ids: Vec<Uuid>) -> Result<HashMap<Uuid, SessionName>> {
    let rows = db.read("SELECT id, header FROM sessions WHERE id = ANY ($1)", &[&ids]).await?;
    rows.iter().map(|row| Ok((row.get(0), parse_header(row.get(1))?))).collect()
}

/// Returns, for each agent and time, the name of the first session that was saved afterwards and contains that time, by
/// the rule of [`SessionName::if_contains`].
pub(super) async fn names_at(db: &CatalogDb, moments: Vec<(Uuid, Timestamp)>) -> Result<Vec<Option<String>>> {
    let (agents, times): (Vec<Uuid>, Vec<i64>) = moments.into_iter().map(|(agent, at)| (agent, to_nanos(at))).unzip();
    let sql = format!(
        "SELECT s.session_id FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS wanted (agent, at, place)
             LEFT JOIN LATERAL (
                 SELECT near.session_id FROM (
                     SELECT * FROM sessions WHERE agent_id = wanted.agent AND saved_at >= wanted.at
                     ORDER BY saved_at, serial LIMIT {MAX_SESSIONS_SEARCHED}) near
                 WHERE near.started_at <= wanted.at AND NOT near.imported
                 ORDER BY near.saved_at, near.serial LIMIT 1) s ON true
         ORDER BY wanted.place"
    );
    let rows = db.read(&sql, &[&agents, &times]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
