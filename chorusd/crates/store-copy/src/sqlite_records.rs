//! Records of contexts in SQLite: a chain for each context, from the newest back to the first. A record has a checksum over its
//! place in the chain, so it is encoded again for another database.
//!
//! Rows are `context_id, number, before, envelope` as PostgreSQL has them: `before` is the number of the record before, or -1,
//! and is not in the checksum. The contexts with the highest ids come first, and of each the newest record.

use chorus_base::error::{Error, Result};
use chorus_journal::{Record, RecordPosition, unreadable_record};
use chorus_proto::ErrorKind;
use chorus_session::stored_message::ContextNo;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::sqlite::failed;
use crate::stream::RowSender;
use crate::value::{Row, Value};

/// Encodes a record for the place that it has in PostgreSQL.
fn encode_for_postgres(envelope: &[u8], context: ContextNo, place: RecordPosition) -> Result<Vec<u8>> {
    let (of, record) = Record::decode(envelope, place)?;
    if of.is_some_and(|of| of != context) {
        return Err(unreadable_record(format_args!("number {} belongs to another context", place.number)));
    }
    record.encode(context, RecordPosition { before: None, ..place })
}

/// Sends the records of all live contexts. `is_unfinished`: an attempt to copy may have ended in the middle of a chain. Its last
/// row has a record before it that is not there, whose number is unknown.
pub(crate) fn read_all(conn: &Connection, is_unfinished: bool, rows: &mut RowSender) -> Result<()> {
    let contexts = || {
        let mut statement = conn.prepare("SELECT id, last_record FROM contexts WHERE NOT ended ORDER BY id DESC")?;
        statement
            .query_map([], |row| Ok((ContextNo(row.get(0)?), row.get(1)?)))?
            .collect::<Result<Vec<(ContextNo, Option<i64>)>, _>>()
    };
    let contexts = contexts().map_err(|e: rusqlite::Error| failed(&e))?;
    for (context, newest) in contexts {
        let sent = read_chain(conn, (context, newest), is_unfinished, rows).map_err(|failure| {
            let message = format!("the live conversation {}: {}", context.0, failure.message);
            Error { message, ..failure }
        })?;
        if !sent {
            break;
        }
    }
    Ok(())
}

/// Sends the records of a context. Returns false if nobody reads them any more.
fn read_chain(
    conn: &Connection,
    (context, newest): (ContextNo, Option<i64>),
    is_unfinished: bool,
    rows: &mut RowSender,
) -> Result<bool> {
    let sql = "SELECT before, number, envelope FROM records WHERE id = ?1";
    let mut statement = conn.prepare_cached(sql).map_err(|e| failed(&e))?;
    // A record whose predecessor is not known yet.
    let mut waiting: Option<(u32, Vec<u8>)> = None;
    let mut next = newest;
    let mut send = |(number, envelope): (u32, Vec<u8>), before: Value| {
        let row = vec![Value::Int(context.0), Value::Int(number.into()), before, Value::Bytes(envelope)];
        rows.send_blocking(row).is_ok()
    };
    while let Some(id) = next {
        let found = statement.query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?)));
        let Some((before, number, envelope)) = found.optional().map_err(|e| failed(&e))? else {
            if is_unfinished {
                return Ok(waiting.is_none_or(|last| send(last, Value::Unknown)));
            }
            return Err(unreadable_record("one in the middle of a context is missing"));
        };
        // A damaged link could form a cycle.
        if waiting.as_ref().is_some_and(|(after, _)| *after <= number) {
            return Err(unreadable_record(format_args!("number {number} is out of order")));
        }
        let envelope = encode_for_postgres(&envelope, context, RecordPosition { before, number })?;
        if let Some(after) = waiting.replace((number, envelope))
            && !send(after, Value::Int(number.into()))
        {
            return Ok(false);
        }
        next = before;
    }
    Ok(waiting.is_none_or(|first| send(first, Value::Int(-1))))
}

/// Name of the value with the row id of the next record to insert. Rows come from the last record of all to the first, and get
/// ids that fall.
const NEXT_ID: &str = "copy.next_record";

/// Prepares an empty table for `total` rows.
pub(crate) fn begin(conn: &Connection, total: u64) -> Result<()> {
    set_next_id(conn, total.cast_signed())
}

/// Returns whether the rows that are there have the ids that they would get if there were `total` of them.
pub(crate) fn can_continue(conn: &Connection, total: u64) -> Result<bool> {
    let count: u64 = conn.query_row("SELECT count(*) FROM records", [], |row| row.get(0)).map_err(|e| failed(&e))?;
    Ok(next_id(conn)? == Some(total.cast_signed() - count.cast_signed()))
}

fn next_id(conn: &Connection) -> Result<Option<i64>> {
    let found = conn.query_row("SELECT CAST(value AS INTEGER) FROM marks WHERE name = ?1", [NEXT_ID], |row| row.get(0));
    found.optional().map_err(|e| failed(&e))
}

fn set_next_id(conn: &Connection, id: i64) -> Result<()> {
    let sql = "INSERT INTO marks (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    conn.execute(sql, params![NEXT_ID, id.to_string()]).map(drop).map_err(|e| failed(&e))
}

/// Inserts rows, which follow those before, and points contexts to their newest record.
pub(crate) fn insert(conn: &Connection, rows: &[Row]) -> Result<()> {
    let mut id = next_id(conn)?.ok_or_else(|| Error::internal("the copy of records was not started"))?;
    let mut add = conn
        .prepare_cached("INSERT INTO records (id, before, number, envelope) VALUES (?1, ?2, ?3, ?4)")
        .map_err(|e| failed(&e))?;
    let mut point = conn
        .prepare_cached("UPDATE contexts SET last_record = ?2 WHERE id = ?1 AND last_record IS NULL")
        .map_err(|e| failed(&e))?;
    for row in rows {
        let [Value::Int(context), Value::Int(number), Value::Int(before), Value::Bytes(envelope)] = &row[..] else {
            return Err(Error::internal("a record without its columns"));
        };
        let number = u32::try_from(*number).map_err(unreadable_record)?;
        let place = RecordPosition { before: None, number };
        let (of, record) = Record::decode(envelope, place)?;
        if of != Some(ContextNo(*context)) {
            let what = format!("number {number} of the live conversation {context} belongs to another one");
            return Err(Error::new(ErrorKind::StorageFailed, what));
        }
        let before = (*before >= 0).then_some(id - 1);
        let envelope = record.encode(ContextNo(*context), RecordPosition { before, number })?;
        add.execute(params![id, before, number, envelope]).map_err(|e| failed(&e))?;
        point.execute(params![context, id]).map_err(|e| failed(&e))?;
        id -= 1;
    }
    set_next_id(conn, id)
}

/// Removes what only the copy needs.
pub(crate) fn finish(conn: &Connection) -> Result<()> {
    conn.execute("DELETE FROM marks WHERE name = ?1", [NEXT_ID]).map(drop).map_err(|e| failed(&e))
}
