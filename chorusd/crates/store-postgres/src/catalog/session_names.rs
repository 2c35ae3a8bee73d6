//! Finds sessions by what a person types: a name, the start of one, a slug, or words of a title.

use chorus_base::error::Result;
use chorus_catalog::{HeaderFields, MAX_MATCHES, SessionRow, has_words, uuid_range};
use chorus_session::slug;
use uuid::Uuid;

use super::database::CatalogDb;
use super::session_filter::{Filter, after_prefix, plan_words};
use super::session_rows::{COLUMN_COUNT, COLUMNS, read_optional, read_sessions};

/// Candidates that are read in one go.
const CANDIDATES_AT_ONCE: i64 = 100;

/// Returns the sessions with exactly this name, of `agent` or of all agents.
pub(super) async fn list_named(db: &CatalogDb, agent: Option<Uuid>, session_id: String) -> Result<Vec<SessionRow>> {
    let mut filter = Filter::default();
    let name = filter.bind(session_id);
    filter.add(format!("session_id = {name}"));
    add_agent(&mut filter, agent);
    first_matching(db, &filter, &[filter.condition()]).await
}

/// Returns the sessions whose name or UUID starts with `prefix`, of `agent` or of all agents.
pub(super) async fn list_with_prefix(db: &CatalogDb, agent: Option<Uuid>, prefix: String) -> Result<Vec<SessionRow>> {
    let mut filter = Filter::default();
    add_agent(&mut filter, agent);
    let ids = uuid_range(&prefix).map(|range| <[_; 2]>::from(range).map(|end| filter.bind(Uuid::from_bytes(end))));
    let mut conditions = Vec::new();
    if let Some([low, high]) = ids {
        conditions.push(format!("{} AND id BETWEEN {low} AND {high}", filter.condition()));
    }
    let named = has_prefix(&mut filter, "session_id", prefix);
    conditions.push(format!("{} AND {named}", filter.condition()));
    first_matching(db, &filter, &conditions).await
}

/// Returns the sessions of `agents` whose slug starts with `slug`, or is `slug`.
pub(super) async fn list_with_slug(db: &CatalogDb, agents: Vec<Uuid>, slug: String) -> Result<Vec<SessionRow>> {
    let mut filter = Filter::default();
    let agents = filter.bind(agents);
    let is_named = has_prefix(&mut filter, "slug", slug.clone());
    filter.add(format!("agent_id = ANY ({agents}) AND {is_named}"));
    let rows = first_matching(db, &filter, &[filter.condition()]).await?;
    Ok(exact_or_all(rows, |row| {
        let found = row.header.session_id.get(11..);
        found.is_some_and(|found| slug::is_numbered(found, &slug, row.header.description.as_deref()))
    }))
}

/// Returns the sessions of `agents` that have the words in their title, or as their title.
pub(super) async fn list_with_title_words(db: &CatalogDb, agents: Vec<Uuid>, words: String) -> Result<Vec<SessionRow>> {
    let words = words.to_lowercase();
    let planned = plan_words(db, vec![words.clone()]).await?;
    let (mut rows, mut before) = (Vec::new(), (i64::MAX, i64::MAX));
    loop {
        let mut filter = Filter::default();
        let agents = filter.bind(agents.clone());
        filter.add(format!("agent_id = ANY ({agents})"));
        planned.iter().for_each(|word| filter.add_word(word, Vec::new()));
        let (place, serial) = (filter.bind(before.0), filter.bind(before.1));
        filter.add(format!("(place, serial) < ({place}, {serial})"));
        // Without the index, the sessions of the agents are read from the newest on.
        let order = if planned.iter().any(|word| word.is_indexed) { "MATERIALIZED" } else { "NOT MATERIALIZED" };
        let sql = format!(
            "WITH matching AS {order} (SELECT id, place, serial FROM sessions WHERE {}),
                 page AS (SELECT id FROM matching ORDER BY place DESC, serial DESC LIMIT {CANDIDATES_AT_ONCE})
             SELECT {COLUMNS}, s.place, s.serial FROM page CROSS JOIN LATERAL (
                 SELECT * FROM sessions WHERE id = page.id OFFSET 0) s
             ORDER BY s.place DESC, s.serial DESC",
            filter.condition()
        );
        let candidates = db.read_once(&sql, &filter.params()).await?;
        for row in &candidates {
            let title = HeaderFields::parse(row.get(0)).and_then(|fields| fields.lower_title());
            if title.is_some_and(|title| has_words(&title, &words)) {
                rows.extend(read_optional(row, 0)?);
            }
            if rows.len() == MAX_MATCHES {
                break;
            }
        }
        match candidates.last() {
            Some(last) if rows.len() < MAX_MATCHES => {
                before = (last.get(COLUMN_COUNT), last.get(COLUMN_COUNT + 1));
            }
            _ => break,
        }
    }
    Ok(exact_or_all(rows, |row| row.header.description.as_deref().is_some_and(|title| title.to_lowercase() == words)))
}

fn add_agent(filter: &mut Filter, agent: Option<Uuid>) {
    if let Some(agent) = agent {
        let agent = filter.bind(agent);
        filter.add(format!("agent_id = {agent}"));
    }
}

/// The condition that a column starts with a text.
fn has_prefix(filter: &mut Filter, column: &str, prefix: String) -> String {
    let end = after_prefix(&prefix).map(|end| filter.bind(end));
    let prefix = filter.bind(prefix);
    let below = end.map_or(String::new(), |end| format!(" AND {column} < {end}"));
    format!("{column} >= {prefix}{below}")
}

/// Returns the newest sessions that meet one of `conditions`, at most [`MAX_MATCHES`].
async fn first_matching(db: &CatalogDb, filter: &Filter, conditions: &[String]) -> Result<Vec<SessionRow>> {
    let newest = format!("ORDER BY place DESC, serial DESC LIMIT {MAX_MATCHES}");
    let each = conditions.iter().map(|condition| format!("(SELECT * FROM sessions WHERE {condition} {newest})"));
    // A session that meets two of them is there once.
    let sql = format!("SELECT {COLUMNS} FROM ({}) s {newest}", each.collect::<Vec<_>>().join(" UNION "));
    read_sessions(&db.read_once(&sql, &filter.params()).await?)
}

/// Returns those of the rows that are exact, or all if none is.
fn exact_or_all(mut rows: Vec<SessionRow>, is_exact: impl Fn(&SessionRow) -> bool) -> Vec<SessionRow> {
    if rows.iter().any(&is_exact) {
        rows.retain(is_exact);
    }
    rows
}
