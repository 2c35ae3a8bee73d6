//! Lists sessions in pages, newest first, with the number of those that match.

use chorus_base::error::Result;
use chorus_catalog::{SessionQuery, SessionRow, ShortId};
use uuid::Uuid;

use super::database::CatalogDb;
use super::session_filter::{Filter, Word, plan_words};
use super::session_lookup::read_short_id;
use super::session_rows::{COLUMN_COUNT, COLUMNS, read_optional, read_sessions};
use crate::rows::{count, to_bigint};

/// More than any table has. The sum of two is still a number.
const MAX_ROWS: i64 = i64::MAX / 4;

/// Limit of a page whose statement has its length in the text. Each text is prepared once for each connection.
const MAX_LIMIT_IN_TEXT: u64 = 100;

/// A page is found by its place in an index if the total is known from counters or an index of the same conditions.
/// Otherwise, all sessions that match are collected, because the total is theirs.
struct Listing {
    filter: Filter,
    /// Names of parameters.
    agents: Option<String>,
    offset: String,
    limit: String,
    /// True for several agents: the page is merged from one of each.
    is_merged: bool,
    is_indexed: bool,
    /// True for a page from the newest session on, which is found without the total.
    is_first: bool,
    total: String,
}

impl Listing {
    fn new(query: &SessionQuery, words: &[Word]) -> Self {
        let mut filter = Filter::default();
        let is_indexed = query.since.is_none()
            && query.until.is_none()
            && query.source.is_none()
            && query.project.is_none()
            && query.tag.is_none()
            && words.is_empty();
        let mut number = |value: u64| format!("{}::bigint", filter.bind(to_bigint(value).min(MAX_ROWS)));
        // With numbers in its text, one plan fits all: it is made once.
        let is_first = is_indexed && query.offset == 0 && (1..=MAX_LIMIT_IN_TEXT).contains(&query.limit);
        let (offset, limit) = match is_first {
            true => ("0".to_owned(), to_bigint(query.limit).min(MAX_ROWS).to_string()),
            false => (number(query.offset), number(query.limit)),
        };
        let mut agents: Vec<Uuid> = query.agent.into_iter().collect();
        agents.extend(query.agent.iter().flat_map(|_| query.also.iter().copied()));
        agents.sort_unstable();
        agents.dedup();
        let is_merged = agents.len() > 1;
        let agents = query.agent.map(|_| filter.bind(agents));
        let mut total = match &agents {
            None => "(SELECT coalesce(sum(sessions), 0)::bigint FROM session_totals)".to_owned(),
            Some(agents) => format!(
                "(SELECT coalesce(sum(sessions), 0)::bigint FROM session_counts WHERE agent_id = ANY ({agents}))"
            ),
        };
        filter.add_query(query, words);
        if let Some((agent, conversation)) = query.agent.zip(query.conversation) {
            let id = filter.bind(if conversation.is_main() { agent } else { conversation.id });
            if is_merged {
                // Imported sessions belong to no conversation.
                let agent = filter.bind(agent);
                filter.add(format!("(conversation_id = {id} OR agent_id <> {agent})"));
            } else {
                filter.add(format!("conversation_id = {id}"));
            }
        }
        if is_indexed {
            let of_agents = agents.as_ref().map_or("true".to_owned(), |agents| format!("agent_id = ANY ({agents})"));
            if query.agent.and(query.conversation).is_some() {
                let condition = filter.condition();
                total = format!("(SELECT count(*) FROM sessions WHERE {of_agents} AND {condition})");
            } else if !query.hidden.is_empty() {
                let hidden = filter.bind(query.hidden.clone());
                total = format!(
                    "{total} - (SELECT count(*) FROM sessions WHERE {of_agents} AND conversation_id = ANY ({hidden})
                         AND conversation_id <> agent_id)"
                );
            }
        }
        Self { filter, agents, offset, limit, is_merged, is_indexed, is_first, total }
    }

    /// The conditions with that on the agents.
    fn condition(&self) -> String {
        let condition = self.filter.condition();
        self.agents.as_ref().map_or(condition.clone(), |agents| format!("agent_id = ANY ({agents}) AND {condition}"))
    }

    /// The conditions with that on the agent, of which there is at most one.
    fn condition_of_one(&self) -> String {
        let condition = self.filter.condition();
        let agent = self.agents.as_ref().map(|agents| format!("agent_id = ({agents}::uuid[])[1] AND {condition}"));
        agent.unwrap_or(condition)
    }

    /// Selects the ids of a page in an order, `DESC` for the newest first.
    fn page(&self, order: &str, limit: &str, offset: &str) -> String {
        let condition = self.filter.condition();
        let columns = "id, place, serial";
        match &self.agents {
            Some(agents) if self.is_merged => format!(
                "SELECT {columns} FROM unnest({agents}::uuid[]) AS of (agent) CROSS JOIN LATERAL (
                     SELECT {columns} FROM sessions WHERE agent_id = of.agent AND {condition}
                     ORDER BY place {order}, serial {order} LIMIT {limit} + {offset}) each
                 ORDER BY place {order}, serial {order} LIMIT {limit} OFFSET {offset}"
            ),
            _ => format!(
                "SELECT {columns} FROM sessions WHERE {}
                 ORDER BY place {order}, serial {order} LIMIT {limit} OFFSET {offset}",
                self.condition_of_one()
            ),
        }
    }

    /// The tables `total`, with the number of all, and `page`, with the ids.
    fn tables(&self) -> String {
        let Self { limit, offset, total, .. } = self;
        if !self.is_indexed {
            let condition = self.condition();
            return format!(
                "WITH matching AS MATERIALIZED (SELECT id, place, serial FROM sessions WHERE {condition}),
                     total AS (SELECT count(*) AS count FROM matching),
                     page AS (SELECT id FROM matching ORDER BY place DESC, serial DESC LIMIT {limit} OFFSET {offset})"
            );
        }
        // Of several agents: one has a simpler form.
        if self.is_first {
            let newest = self.page("DESC", limit, offset);
            return format!(
                "WITH total AS MATERIALIZED (SELECT {total} AS count), page AS (SELECT id FROM ({newest}) newest)"
            );
        }
        // A page nearer to the oldest session is read from that end, because all rows before an offset are stepped over.
        let of_total = |number: &str| format!("(SELECT {number} FROM total)");
        let is_near = format!("count - {offset} >= {offset}");
        let rest = format!("greatest(least({limit}, count - {offset}), 0)");
        let newest = self.page("DESC", &of_total(&format!("CASE WHEN {is_near} THEN {limit} ELSE 0 END")), offset);
        let oldest = self.page(
            "ASC",
            &of_total(&format!("CASE WHEN {is_near} THEN 0 ELSE {rest} END")),
            &of_total(&format!("greatest(count - {offset} - {limit}, 0)")),
        );
        // The outer limits are what the planner knows of the size of a page.
        format!(
            "WITH total AS MATERIALIZED (SELECT {total} AS count),
                 page AS ((SELECT id FROM ({newest}) newest LIMIT {limit})
                     UNION ALL (SELECT id FROM ({oldest}) oldest LIMIT {limit}))"
        )
    }
}

/// Looks up the rows of a page one by one: the database does not know how few they are.
const ROW_OF_PAGE: &str = "LATERAL (SELECT * FROM sessions WHERE id = page.id OFFSET 0) s";

/// Returns a page, with the short ids of its sessions if `with_short_ids`, and the total number that match.
pub(super) async fn list(
    db: &CatalogDb,
    query: &SessionQuery,
    with_short_ids: bool,
) -> Result<(Vec<SessionRow>, Vec<ShortId>, u64)> {
    let listing = Listing::new(query, &plan_words(db, query.lower_words()).await?);
    let neighbours = if with_short_ids {
        ", (SELECT id FROM sessions WHERE id < s.id ORDER BY id DESC LIMIT 1),
             (SELECT id FROM sessions WHERE id > s.id ORDER BY id LIMIT 1)"
    } else {
        ""
    };
    let sql = if listing.is_first && !listing.is_merged {
        // Most lists. In this form it takes half as long, and has no row from which to read that there are none.
        let Listing { total, limit, .. } = &listing;
        let condition = listing.condition_of_one();
        format!(
            "SELECT {total}, {COLUMNS}{neighbours} FROM sessions s WHERE {condition}
             ORDER BY s.place DESC, s.serial DESC LIMIT {limit}"
        )
    } else {
        format!(
            "{} SELECT total.count, {COLUMNS}{neighbours} FROM total LEFT JOIN page ON true LEFT JOIN {ROW_OF_PAGE} ON true
             ORDER BY s.place DESC, s.serial DESC",
            listing.tables()
        )
    };
    let rows = if listing.is_indexed {
        db.read(&sql, &listing.filter.params()).await?
    } else {
        db.read_once(&sql, &listing.filter.params()).await?
    };
    let total = rows.first().map_or(0, |row| count(row, 0));
    let (mut sessions, mut short) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in &rows {
        let Some(session) = read_optional(row, 1)? else { continue };
        if with_short_ids {
            short.push(read_short_id(session.header.id, row, 1 + COLUMN_COUNT));
        }
        sessions.push(session);
    }
    Ok((sessions, short, total))
}

/// Returns the session at the offset of a query.
pub(super) async fn nth(db: &CatalogDb, query: SessionQuery) -> Result<Option<SessionRow>> {
    let listing = Listing::new(&SessionQuery { limit: 1, ..query }, &[]);
    let (limit, offset) = (&listing.limit, &listing.offset);
    let page = if listing.is_indexed {
        listing.page("DESC", limit, offset)
    } else {
        format!(
            "WITH matching AS MATERIALIZED (SELECT id, place, serial FROM sessions WHERE {})
             SELECT id FROM matching ORDER BY place DESC, serial DESC LIMIT {limit} OFFSET {offset}",
            listing.condition()
        )
    };
    let sql = format!("SELECT {COLUMNS} FROM ({page}) page CROSS JOIN {ROW_OF_PAGE}");
    Ok(read_sessions(&db.read_once(&sql, &listing.filter.params()).await?)?.pop())
}
