//! Finds sessions by what a person types: a name, the start of one, a slug, or words of a title.

use chorus_catalog::{HeaderFields, MAX_MATCHES, SessionRow, has_words, uuid_range};
use chorus_session::slug;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use uuid::Uuid;

use super::session_listing::is_plain;
use super::session_rows::{COLUMNS, read_session};
use crate::sqlite::StoreResult;

/// Returns the sessions with exactly this name, of `agent` or of all agents.
pub(super) fn list_named(conn: &Connection, agent: Option<Uuid>, session_id: String) -> StoreResult<Vec<SessionRow>> {
    let of_agent = if agent.is_some() { "AND agent_id = ?2" } else { "" };
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions WHERE session_id = ?1 {of_agent} ORDER BY place DESC LIMIT {MAX_MATCHES}"
    ))?;
    let mut values = vec![Value::from(session_id)];
    values.extend(agent.map(|agent| Value::Blob(agent.as_bytes().to_vec())));
    Ok(statement.query_map(params_from_iter(values), read_session)?.collect::<rusqlite::Result<_>>()?)
}

/// Returns the sessions whose name or UUID begins with `prefix`, of `agent` or of all agents.
pub(super) fn list_with_prefix(conn: &Connection, agent: Option<Uuid>, prefix: String) -> StoreResult<Vec<SessionRow>> {
    let (low, high) = uuid_range(&prefix).unwrap_or(([0xFF; 16], [0; 16]));
    let of_agent = if agent.is_some() { "AND agent_id = ?4" } else { "" };
    // substr instead of LIKE, because `_` is a wildcard in LIKE and occurs in every name.
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions
         WHERE (substr(session_id, 1, length(?1)) = ?1 OR id BETWEEN ?2 AND ?3) {of_agent}
         ORDER BY place DESC, rowid DESC LIMIT {MAX_MATCHES}"
    ))?;
    let mut values = vec![Value::from(prefix), Value::Blob(low.to_vec()), Value::Blob(high.to_vec())];
    values.extend(agent.map(|agent| Value::Blob(agent.as_bytes().to_vec())));
    Ok(statement.query_map(params_from_iter(values), read_session)?.collect::<rusqlite::Result<_>>()?)
}

/// Returns the sessions of `agents` whose slug begins with `slug`, or is `slug`.
pub(super) fn list_with_slug(conn: &Connection, agents: &[Uuid], slug: &str) -> StoreResult<Vec<SessionRow>> {
    let is_exact = |row: &SessionRow| {
        let found = row.header.session_id.get(11..);
        found.is_some_and(|found| slug::is_numbered(found, slug, row.header.description.as_deref()))
    };
    list_in(conn, agents, slug, "substr(session_id, 12, length(?1)) = ?1", |_| true, is_exact)
}

/// Returns the sessions of `agents` that have the words in their title, or as their title.
pub(super) fn list_with_title_words(conn: &Connection, agents: &[Uuid], words: &str) -> StoreResult<Vec<SessionRow>> {
    let words = words.to_lowercase();
    let condition = if is_plain_title(&words) { "instr(lower(header), ?1)" } else { "?1 IS NOT NULL" };
    let is_exact =
        |row: &SessionRow| row.header.description.as_deref().is_some_and(|title| title.to_lowercase() == words);
    let is_candidate = |header: &str| {
        let title = HeaderFields::parse(header).and_then(|fields| fields.lower_title());
        title.is_some_and(|title| has_words(&title, &words))
    };
    list_in(conn, agents, &words, condition, is_candidate, is_exact)
}

/// Returns the sessions of `agents` that meet `condition`, in which `?1` is `text`, and whose header is a candidate;
/// those of them that are exact, if there are any.
fn list_in(
    conn: &Connection,
    agents: &[Uuid],
    text: &str,
    condition: &str,
    is_candidate: impl Fn(&str) -> bool,
    is_exact: impl Fn(&SessionRow) -> bool,
) -> StoreResult<Vec<SessionRow>> {
    let others = ", ?".repeat(agents.len().saturating_sub(1));
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions WHERE {condition} AND agent_id IN (?{others})
         ORDER BY place DESC, rowid DESC"
    ))?;
    let mut values = vec![Value::from(text.to_owned())];
    values.extend(agents.iter().map(|agent| Value::Blob(agent.as_bytes().to_vec())));
    let mut found = statement.query(params_from_iter(values))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        if is_candidate(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?) {
            rows.push(read_session(row)?);
        }
        if rows.len() == MAX_MATCHES {
            break;
        }
    }
    if rows.iter().any(&is_exact) {
        rows.retain(is_exact);
    }
    Ok(rows)
}

/// Returns true if a title that contains `words` can be found by searching the JSON of a header for them.
fn is_plain_title(words: &str) -> bool {
    words.split(' ').all(is_plain)
}
