//! Rows of the table `contexts`: the totals and metadata of a context, without its messages.

use chorus_journal::{ContextRow, NewContextRow, from_nanos, to_nanos};
use chorus_proto::TokenPair;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, Totals};
use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use crate::sqlite::StoreResult;

/// Inserts the row of a new context.
pub(super) fn insert(conn: &Connection, context: ContextNo, row: &NewContextRow) -> StoreResult<()> {
    conn.prepare_cached(
        "INSERT INTO contexts (id, agent_id, started_at, last_activity_at, idle_deadline_at, parent_id, conversation_id)
         VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        context.0,
        row.conversation.agent.as_bytes(),
        to_nanos(row.started_at),
        row.idle_deadline_at.map(to_nanos),
        row.parent.as_ref().map(Uuid::as_bytes),
        row.conversation.stored_id().as_ref().map(Uuid::as_bytes),
    ])?;
    Ok(())
}

/// Adds the totals of appended messages, the last of them in the row `newest`. Returns the new number of messages.
pub(super) fn add_totals(
    conn: &Connection,
    context: ContextNo,
    totals: Totals,
    at: Timestamp,
    deadline: Option<Timestamp>,
    newest: Option<i64>,
) -> StoreResult<u64> {
    Ok(conn
        .prepare_cached(
            "UPDATE contexts SET messages = messages + ?2, queries = queries + ?3, chars = chars + ?4,
                 last_activity_at = ?5, idle_deadline_at = ?6, last_record = ?7 WHERE id = ?1 RETURNING messages",
        )?
        .query_row(
            params![
                context.0,
                totals.messages,
                totals.queries,
                totals.chars,
                to_nanos(at),
                deadline.map(to_nanos),
                newest
            ],
            |row| row.get(0),
        )?)
}

/// Sets the totals after an edit. Does not change the time of the last activity, because pins alone are no activity.
pub(super) fn update_totals(
    conn: &Connection,
    context: ContextNo,
    totals: Totals,
    saved: u64,
    deadline: Option<Timestamp>,
    newest: Option<i64>,
) -> StoreResult<()> {
    conn.prepare_cached(
        "UPDATE contexts SET messages = ?2, queries = ?3, chars = ?4, saved_messages = ?5, idle_deadline_at = ?6,
             last_record = ?7 WHERE id = ?1",
    )?
    .execute(params![
        context.0,
        totals.messages,
        totals.queries,
        totals.chars,
        saved,
        deadline.map(to_nanos),
        newest
    ])?;
    Ok(())
}

/// Sets only the newest record.
pub(super) fn set_last_record(conn: &Connection, context: ContextNo, newest: Option<i64>) -> StoreResult<()> {
    conn.prepare_cached("UPDATE contexts SET last_record = ?2 WHERE id = ?1")?.execute(params![context.0, newest])?;
    Ok(())
}

/// Sets the cost of resuming.
pub(super) fn set_restoration(conn: &Connection, context: ContextNo, cost: TokenPair) -> StoreResult<()> {
    conn.prepare_cached("UPDATE contexts SET restored_input = ?2, restored_output = ?3 WHERE id = ?1")?
        .execute(params![context.0, cost.input, cost.output])?;
    Ok(())
}

/// Returns the statement that selects the columns that [`read_row`] reads. The journal may be one of an earlier version
/// that was set aside.
pub(super) fn select_rows(conn: &Connection) -> StoreResult<String> {
    let columns = "SELECT count(*) FROM pragma_table_info('contexts') WHERE name = 'conversation_id'";
    let has_conversations: bool = conn.query_row(columns, [], |row| row.get(0))?;
    let conversation = if has_conversations { "conversation_id" } else { "NULL" };
    Ok(format!(
        "SELECT id, agent_id, started_at, last_activity_at, idle_deadline_at, messages, queries, chars, parent_id,
             saved_messages, saved_session, base_session, turn, restored_input, restored_output, {conversation}
         FROM contexts"
    ))
}

/// Lists the rows of all live contexts.
pub(super) fn list_live(conn: &Connection) -> StoreResult<Vec<ContextRow>> {
    let mut statement = conn.prepare(&format!("{} WHERE NOT ended ORDER BY id", select_rows(conn)?))?;
    let heads = statement.query_map([], read_row)?.collect::<rusqlite::Result<_>>()?;
    Ok(heads)
}

pub(super) fn read_row(row: &Row<'_>) -> rusqlite::Result<ContextRow> {
    Ok(ContextRow {
        context: ContextNo(row.get(0)?),
        conversation: ConversationKey::from_stored(read_uuid(row, 1)?.unwrap_or_default(), read_uuid(row, 15)?),
        started_at: from_nanos(row.get(2)?),
        last_activity_at: from_nanos(row.get(3)?),
        idle_deadline_at: row.get::<_, Option<i64>>(4)?.map(from_nanos),
        totals: Totals { messages: row.get(5)?, queries: row.get(6)?, chars: row.get(7)? },
        parent: read_uuid(row, 8)?,
        saved_messages: row.get(9)?,
        saved_session: read_uuid(row, 10)?,
        base_session: read_uuid(row, 11)?,
        turn: read_uuid(row, 12)?,
        restoration: TokenPair { input: row.get(13)?, output: row.get(14)? },
    })
}

/// Reads a nullable UUID.
pub(super) fn read_uuid(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Uuid>> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    bytes
        .map(|bytes| {
            Uuid::from_slice(&bytes)
                .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, Box::new(e)))
        })
        .transpose()
}
