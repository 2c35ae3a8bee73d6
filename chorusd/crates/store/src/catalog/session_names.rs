//! Finds sessions by what a person types: a name, the start of one, a slug, or words of a title.

use chorus_base::error::Result;
use chorus_session::slug;
use rusqlite::params_from_iter;
use rusqlite::types::Value;
use uuid::Uuid;

use super::session_listing::{HeaderFields, is_plain};
use super::sessions::{COLUMNS, SessionRow, SessionTable, read_session};
use super::short_ids::uuid_range;

/// Sessions that are listed if several match.
const MAX_MATCHES: usize = 20;

impl SessionTable {
    /// Returns the sessions with exactly this name, of `agent` or of all agents, at most 20.
    pub async fn list_named(&self, agent: Option<Uuid>, session_id: String) -> Result<Vec<SessionRow>> {
        self.db
            .reader
            .submit(move |conn| {
                let of_agent = if agent.is_some() { "AND agent_id = ?2" } else { "" };
                let mut statement = conn.prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM sessions WHERE session_id = ?1 {of_agent} ORDER BY place DESC LIMIT 20"
                ))?;
                let mut values = vec![Value::from(session_id)];
                values.extend(agent.map(|agent| Value::Blob(agent.as_bytes().to_vec())));
                let rows =
                    statement.query_map(params_from_iter(values), read_session)?.collect::<rusqlite::Result<_>>()?;
                Ok(rows)
            })
            .await
    }

    /// Returns the sessions whose session_id or UUID begins with `prefix`, of `agent` or of all agents, newest first,
    /// at most 20.
    pub async fn list_with_prefix(&self, agent: Option<Uuid>, prefix: String) -> Result<Vec<SessionRow>> {
        self.db
            .reader
            .submit(move |conn| {
                let (low, high) = uuid_range(&prefix).unwrap_or(([0xFF; 16], [0; 16]));
                let of_agent = if agent.is_some() { "AND agent_id = ?5" } else { "" };
                // substr instead of LIKE, because `_` is a wildcard in LIKE and occurs in every name.
                let mut statement = conn.prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM sessions
                     WHERE (substr(session_id, 1, length(?1)) = ?1 OR id BETWEEN ?2 AND ?3) AND ?4 {of_agent}
                     ORDER BY place DESC, rowid DESC LIMIT 20"
                ))?;
                let mut values =
                    vec![Value::from(prefix), Value::Blob(low.to_vec()), Value::Blob(high.to_vec()), Value::Integer(1)];
                values.extend(agent.map(|agent| Value::Blob(agent.as_bytes().to_vec())));
                let rows =
                    statement.query_map(params_from_iter(values), read_session)?.collect::<rusqlite::Result<_>>()?;
                Ok(rows)
            })
            .await
    }

    /// Returns the sessions of `agents` whose slug, the session_id without its date, begins with `slug`, newest first, at
    /// most 20; only those with exactly this slug, if there are any. The number that made a name unique does not count.
    pub async fn list_with_slug(&self, agents: Vec<Uuid>, slug: String) -> Result<Vec<SessionRow>> {
        self.list_in(
            agents,
            slug.clone(),
            "substr(session_id, 12, length(?1)) = ?1",
            |_| true,
            move |row| {
                row.header
                    .session_id
                    .get(11..)
                    .is_some_and(|found| slug::is_numbered(found, &slug, row.header.description.as_deref()))
            },
        )
        .await
    }

    /// Returns the sessions of `agents` with these words in their title, in any case, newest first, at most 20; only
    /// those with exactly this title, if there are any.
    pub async fn list_with_title_words(&self, agents: Vec<Uuid>, words: String) -> Result<Vec<SessionRow>> {
        let lower = words.to_lowercase();
        let plain = if is_plain_title(&lower) { "instr(lower(header), ?1)" } else { "?1 IS NOT NULL" };
        let has_title = |row: &SessionRow, lower: &str| {
            row.header.description.as_deref().is_some_and(|title| title.to_lowercase() == lower)
        };
        let (wanted, exact) = (lower.clone(), lower.clone());
        let is_candidate = move |header: &str| {
            let title = HeaderFields::parse(header).and_then(|fields| fields.lower_title());
            title.is_some_and(|title| has_words(&title, &wanted))
        };
        self.list_in(agents, lower, plain, is_candidate, move |row| has_title(row, &exact)).await
    }

    /// Returns the sessions of `agents` that meet `condition`, in which `?1` is `text`, and whose header is a candidate, at
    /// most 20; those of them that are `exact`, if there are any.
    async fn list_in(
        &self,
        agents: Vec<Uuid>,
        text: String,
        condition: &'static str,
        is_candidate: impl Fn(&str) -> bool + Send + 'static,
        exact: impl Fn(&SessionRow) -> bool + Send + 'static,
    ) -> Result<Vec<SessionRow>> {
        self.db
            .reader
            .submit(move |conn| {
                let others = ", ?".repeat(agents.len().saturating_sub(1));
                let mut statement = conn.prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM sessions WHERE {condition} AND agent_id IN (?{others})
                     ORDER BY place DESC, rowid DESC"
                ))?;
                let mut values = vec![Value::from(text)];
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
                if rows.iter().any(&exact) {
                    rows.retain(exact);
                }
                Ok(rows)
            })
            .await
    }
}

/// Returns true if a title that contains `words` can be found by searching the JSON of a header for them.
fn is_plain_title(words: &str) -> bool {
    words.split(' ').all(is_plain)
}

/// Returns true if `words` occur in `title` and are not a part of longer words there.
fn has_words(title: &str, words: &str) -> bool {
    title.match_indices(words).any(|(at, found)| {
        let before = title[..at].chars().next_back();
        let after = title[at + found.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}
