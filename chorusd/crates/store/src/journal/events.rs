//! The event log: numbered without gaps across restarts. The last 10,000 events can be replayed.

use chorus_base::error::Error;
use chorus_journal::{MAX_REPLAYED_EVENTS, NewEvent, from_nanos, to_nanos};
use chorus_proto::event::{Event, EventType};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use serde_json::Value;
use uuid::Uuid;

use crate::sqlite::StoreResult;

const REPLAYED: i64 = MAX_REPLAYED_EVENTS.cast_signed();

/// Old events are deleted in batches of this size, so up to this many more are stored.
const EVENTS_PER_DELETE: i64 = 1_000;

/// Stores an event and returns it with its number.
pub(crate) fn insert(conn: &Connection, event: NewEvent) -> StoreResult<Event> {
    let data = serde_json::to_string(&event.data).map_err(|e| Error::internal(e.to_string()))?;
    conn.prepare_cached("INSERT INTO events (at, type, agent, data, conversation) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![to_nanos(event.at), event.kind.as_str(), event.agent, data, event.conversation])?;
    let seq = conn.last_insert_rowid();
    if seq % EVENTS_PER_DELETE == 0 {
        conn.prepare_cached("DELETE FROM events WHERE seq <= ?1")?.execute([seq - REPLAYED])?;
    }
    Ok(Event {
        seq: u64::try_from(seq).unwrap_or(0),
        time: event.at,
        kind: event.kind,
        agent: event.agent,
        conversation: event.conversation,
        data: event.data,
        node: None,
    })
}

/// Stores a notice with the number `seq`, which must be higher than any so far.
pub(crate) fn insert_notice(conn: &Connection, seq: u64, at: Timestamp, data: &Value) -> StoreResult<()> {
    conn.prepare_cached("INSERT INTO events (seq, at, type, data) VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        seq,
        to_nanos(at),
        EventType::Notice.as_str(),
        data.to_string()
    ])?;
    Ok(())
}

/// Number of the newest event; 0 before the first.
pub(crate) fn last_seq(conn: &Connection) -> StoreResult<u64> {
    Ok(conn.prepare_cached("SELECT coalesce(max(seq), 0) FROM events")?.query_row([], |row| row.get(0))?)
}

/// Returns at most `limit` events after number `after`, and how many events after `after` are deleted already.
pub(crate) fn list_after(conn: &Connection, after: u64, limit: u64) -> StoreResult<(Vec<Event>, u64)> {
    let newest = last_seq(conn)?;
    // Clamp numbers beyond SQLite's greatest integer; no event follows them anyway.
    let after = after.min(i64::MAX as u64 - 1);
    let oldest = newest.saturating_sub(MAX_REPLAYED_EVENTS) + 1;
    let missed = oldest.saturating_sub(after + 1).min(newest.saturating_sub(after));
    let from = after.max(oldest - 1);
    let mut statement = conn.prepare_cached(
        "SELECT seq, at, type, agent, data, conversation FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )?;
    let events = statement
        .query_map(params![from, i64::try_from(limit).unwrap_or(i64::MAX)], read_event)?
        .collect::<rusqlite::Result<_>>()?;
    Ok((events, missed))
}

/// Deletes the events that name a session; a notice names it by its first digits. Also those with replies to schedules, which may be of it.
/// The newest event keeps its row without data, because the next number is counted from it.
pub(crate) fn delete_of_session(conn: &Connection, session: Uuid) -> StoreResult<()> {
    let id = session.to_string();
    let named = "(instr(data, ?1) OR (type = ?2 AND instr(data, ?3)) OR (type = ?4 AND instr(data, '\"reply\"')))";
    let which = params![id, EventType::Notice.as_str(), id.get(..8), EventType::ScheduleFinished.as_str()];
    conn.execute(&format!("DELETE FROM events WHERE {named} AND seq < (SELECT max(seq) FROM events)"), which)?;
    conn.execute(&format!("UPDATE events SET data = '{{}}' WHERE {named}"), which)?;
    Ok(())
}

fn read_event(row: &Row<'_>) -> rusqlite::Result<Event> {
    let data = row.get_ref(4)?.as_str()?;
    Ok(Event {
        seq: row.get(0)?,
        time: from_nanos(row.get(1)?),
        kind: EventType::parse(row.get_ref(2)?.as_str()?),
        agent: row.get(3)?,
        conversation: row.get(5)?,
        data: serde_json::from_str(data).unwrap_or_default(),
        node: None,
    })
}
