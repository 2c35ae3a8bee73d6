//! Lists sessions in pages, filtered by time, tag and words.

use chorus_catalog::{HeaderFields, ProjectFilter, SessionQuery, SessionRow};
use chorus_journal::to_nanos;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};
use uuid::Uuid;

use super::session_rows::{COLUMNS, read_session};
use crate::sqlite::StoreResult;

/// Returns true if a word is the same in JSON, and SQLite's `lower` changes its case as [`str::to_lowercase`] does.
pub(super) fn is_plain(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

/// Returns a page of sessions, newest first, and the total number that match.
pub(super) fn select_page(conn: &Connection, listing: &SessionQuery) -> StoreResult<(Vec<SessionRow>, u64)> {
    if listing.words.is_empty() && listing.since.is_none() && listing.until.is_none() {
        let total = count_matching(conn, listing)?;
        return Ok((read_page(conn, listing, total)?, total));
    }
    let matching = select_matching(conn, listing)?;
    let from = usize::try_from(listing.offset).unwrap_or(usize::MAX);
    let length = usize::try_from(listing.limit).unwrap_or(usize::MAX);
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE rowid = ?"))?;
    let page = matching.iter().skip(from).take(length);
    let rows = page.map(|rowid| statement.query_row([rowid], read_session)).collect::<rusqlite::Result<_>>()?;
    Ok((rows, matching.len() as u64))
}

/// Returns the row ids of the sessions that match, newest first, in one pass over the table.
fn select_matching(conn: &Connection, listing: &SessionQuery) -> StoreResult<Vec<i64>> {
    let words = listing.lower_words();
    let (filter, values) = where_clause(listing);
    let mut statement = conn.prepare_cached(&format!(
        "SELECT rowid, session_id, header FROM sessions {filter} ORDER BY place DESC, rowid DESC"
    ))?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut matching = Vec::new();
    while let Some(row) = rows.next()? {
        let fields = HeaderFields::parse(row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?);
        let name = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        if fields.is_some_and(|fields| fields.matches(name, listing, &words)) {
            matching.push(row.get(0)?);
        }
    }
    Ok(matching)
}

/// Builds the condition on the project of a session, and its values.
pub(super) fn project_condition(project: &ProjectFilter) -> (String, Vec<Value>) {
    let mut values: Vec<Value> = project.agents.iter().map(|agent| Value::Blob(agent.as_bytes().to_vec())).collect();
    let agents = vec!["?"; values.len()].join(", ");
    let mut condition = format!("+agent_id IN ({agents})");
    if let Some(directory) = &project.directory {
        let directory = directory.trim_end_matches('/');
        // `0` comes after the slash, so these are all paths below the directory.
        condition = format!("({condition} OR project = ? OR (project > ? AND project < ?))");
        values.extend(["", "/", "0"].map(|end| Value::Text(format!("{directory}{end}"))));
    }
    if let Some(name) = &project.name {
        condition = format!("({condition} OR substr(project, -length(?) - 1) = '/' || ?)");
        values.extend([name, name].map(|name| Value::Text(name.clone())));
    }
    (condition, values)
}

/// Condition on the conversation of a session, with one value, of [`json_ids`].
const IS_OF_CONVERSATIONS: &str = "hex(conversation_id) IN (SELECT value FROM json_each(?))";

fn json_ids(ids: &[Uuid]) -> Value {
    let ids: Vec<String> = ids.iter().map(|id| id.simple().to_string().to_uppercase()).collect();
    Value::Text(serde_json::Value::from(ids).to_string())
}

/// Builds the `WHERE` clause of a query and its values. It may accept rows that [`HeaderFields::matches`] does not.
fn where_clause(listing: &SessionQuery) -> (String, Vec<Value>) {
    let mut parts = Vec::new();
    let mut values = Vec::new();
    if let Some(agent) = listing.agent {
        // The plus has SQLite walk the index of all sessions, which is in the right order, rather than sort.
        let others = listing.also.len();
        parts.push(if others == 0 {
            "agent_id = ?".to_owned()
        } else {
            format!("+agent_id IN (?{})", ", ?".repeat(others))
        });
        let agents = std::iter::once(&agent).chain(&listing.also);
        values.extend(agents.map(|agent| Value::Blob(agent.as_bytes().to_vec())));
        if let Some(conversation) = listing.conversation {
            let id = conversation.stored_id().map_or(Value::Null, |id| Value::Blob(id.as_bytes().to_vec()));
            values.push(id);
            if others == 0 {
                parts.push("conversation_id IS ?".to_owned());
            } else {
                // Imported sessions belong to no conversation.
                parts.push("(conversation_id IS ? OR agent_id <> ?)".to_owned());
                values.push(Value::Blob(agent.as_bytes().to_vec()));
            }
        }
    }
    if !listing.hidden.is_empty() {
        parts.push(format!("(conversation_id IS NULL OR NOT {IS_OF_CONVERSATIONS})"));
        values.push(json_ids(&listing.hidden));
    }
    if let Some(since) = listing.since {
        // The plus keeps SQLite from using the index on times, which has a different order. An import was saved after its
        // conversation, unless it has grown since.
        parts.push("(+saved_at >= ? OR +place >= ?)".to_owned());
        values.extend([Value::Integer(to_nanos(since)), Value::Integer(to_nanos(since))]);
    }
    if let Some(source) = &listing.source {
        parts.push("+source_program = ?".to_owned());
        values.push(Value::Text(source.clone()));
    }
    if let Some(project) = &listing.project {
        let (condition, of) = project_condition(project);
        parts.push(condition);
        values.extend(of);
    }
    if let Some(tag) = &listing.tag {
        parts.push("id IN (SELECT id FROM session_tags WHERE tag = ?)".to_owned());
        values.push(Value::Text(tag.clone()));
    }
    for word in listing.words.iter().filter(|word| is_plain(word)) {
        let word = word.to_ascii_lowercase();
        let called = listing.conversation_texts.iter().filter(|(_, text)| text.contains(&word)).map(|(id, _)| *id);
        let called: Vec<Uuid> = called.collect();
        values.push(Value::Text(word));
        if called.is_empty() {
            parts.push("instr(lower(header), ?)".to_owned());
        } else {
            parts.push(format!("(instr(lower(header), ?) OR {IS_OF_CONVERSATIONS})"));
            values.push(json_ids(&called));
        }
    }
    let filter = if parts.is_empty() { String::new() } else { format!("WHERE {}", parts.join(" AND ")) };
    (filter, values)
}

/// Reads a page of the `total` sessions, newest first. A page nearer to the oldest session is read from that end,
/// because SQLite steps over all rows before an offset.
pub(super) fn read_page(conn: &Connection, listing: &SessionQuery, total: u64) -> StoreResult<Vec<SessionRow>> {
    let left = total.saturating_sub(listing.offset);
    let backwards = left < listing.offset;
    let (order, limit, offset) = match backwards {
        false => ("DESC", listing.limit, listing.offset),
        true => ("ASC", listing.limit.min(left), left.saturating_sub(listing.limit)),
    };
    let (filter, mut values) = where_clause(listing);
    for number in [limit, offset] {
        values.push(Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)));
    }
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions {filter} ORDER BY place {order}, rowid {order} LIMIT ? OFFSET ?"
    ))?;
    let mut rows: Vec<_> =
        statement.query_map(params_from_iter(values), read_session)?.collect::<rusqlite::Result<_>>()?;
    if backwards {
        rows.reverse();
    }
    Ok(rows)
}

/// Counts the matching sessions. Without a filter it reads maintained counters, so that a long history costs no more
/// than a short one.
fn count_matching(conn: &Connection, listing: &SessionQuery) -> StoreResult<u64> {
    let is_filtered = listing.source.is_some() || listing.project.is_some();
    if listing.tag.is_none() && listing.conversation.is_none() && listing.hidden.is_empty() && !is_filtered {
        let counted = match listing.agent {
            Some(agent) => {
                let mut statement = conn.prepare_cached("SELECT sessions FROM agents WHERE id = ?1")?;
                let mut total = 0;
                for agent in std::iter::once(&agent).chain(&listing.also) {
                    let count: Option<u64> = statement.query_row([agent.as_bytes()], |row| row.get(0)).optional()?;
                    total += count.unwrap_or(0);
                }
                return Ok(total);
            }
            None => conn
                .prepare_cached("SELECT value FROM counters WHERE name = 'sessions'")?
                .query_row([], |row| row.get(0))
                .optional()?,
        };
        return Ok(counted.unwrap_or(0));
    }
    let (filter, values) = where_clause(listing);
    Ok(conn
        .prepare_cached(&format!("SELECT count(*) FROM sessions {filter}"))?
        .query_row(params_from_iter(values), |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_has_what_is_below_its_directory_but_not_beside_it() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE s (agent_id, project)").unwrap();
        for path in ["/home/a", "/home/a/b", "/home/a.b", "/home/ab", "/home", "/home/a0"] {
            conn.execute("INSERT INTO s VALUES (NULL, ?1)", [path]).unwrap();
        }
        let paths = |directory: &str| -> Vec<String> {
            let project = ProjectFilter { directory: Some(directory.to_owned()), ..ProjectFilter::default() };
            let (condition, values) = project_condition(&project);
            let mut statement = conn.prepare(&format!("SELECT project FROM s WHERE {condition}")).unwrap();
            let rows = statement.query_map(params_from_iter(values), |row| row.get(0)).unwrap();
            rows.collect::<rusqlite::Result<_>>().unwrap()
        };
        assert_eq!(paths("/home/a"), ["/home/a", "/home/a/b"]);
        assert_eq!(paths("/home/a/"), ["/home/a", "/home/a/b"]);
        assert_eq!(paths("/").len(), 6);
    }
}
