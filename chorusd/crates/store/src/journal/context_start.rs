//! Contexts that begin with earlier messages, and records behind those of other contexts.

use chorus_journal::{
    Continuation, NewContextRow, Record, SessionReference, TrailingRecords, message_records, unreadable_record,
};
use chorus_proto::{Event, TokenPair};
use chorus_session::stored_message::{ContextNo, StoredMessage, Totals};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::record_list::{self, RecordChain};
use super::{contexts_table, events};
use crate::sqlite::StoreResult;

/// Adds one record to a context that exists.
pub(super) fn append_record(
    conn: &Connection,
    context: ContextNo,
    number: u32,
    record: &Record<'_>,
) -> StoreResult<()> {
    let mut chain = RecordChain::open(conn, context)?.ok_or_else(|| unreadable_record("it has no context"))?;
    chain.append(conn, number, record)?;
    contexts_table::set_last_record(conn, context, chain.newest())
}

/// Ends `old` and begins a context that refers to the first messages of a session.
pub(super) fn start_from_session(
    conn: &Connection,
    old: Option<ContextNo>,
    context: ContextNo,
    head: &NewContextRow,
    reference: &SessionReference,
) -> StoreResult<()> {
    start(conn, old, context, head, reference.restoration, reference.totals_with_added(), reference.records())?;
    conn.prepare_cached(
        "UPDATE contexts SET base_session = ?2, saved_messages = ?3, saved_session = ?2 WHERE id = ?1",
    )?
    .execute(params![context.0, reference.session.as_bytes(), reference.totals.messages])?;
    Ok(())
}

/// Ends the old context, if there is one, and begins another with its own messages. Returns the event about it.
pub(super) fn start_continuation(conn: &Connection, new: Continuation) -> StoreResult<Event> {
    start(conn, new.old, new.context, &new.head, new.restoration, new.totals(), new.records())?;
    events::insert(conn, new.event)
}

fn start<'a>(
    conn: &Connection,
    old: Option<ContextNo>,
    context: ContextNo,
    head: &NewContextRow,
    restoration: TokenPair,
    totals: Totals,
    records: impl Iterator<Item = Record<'a>>,
) -> StoreResult<()> {
    if let Some(old) = old {
        record_list::mark_ended(conn, old)?;
    }
    contexts_table::insert(conn, context, head)?;
    let mut chain = RecordChain::new(context);
    chain.append_all(conn, 0, records)?;
    if !restoration.is_zero() {
        contexts_table::set_restoration(conn, context, restoration)?;
    }
    contexts_table::add_totals(conn, context, totals, head.started_at, head.idle_deadline_at, chain.newest())?;
    Ok(())
}

/// Replaces all records of a context by `messages` and those behind them.
pub(super) fn replace_records(
    conn: &Connection,
    context: ContextNo,
    messages: &[StoredMessage],
    session: Uuid,
    behind: &TrailingRecords,
) -> StoreResult<()> {
    record_list::delete_all(conn, context)?;
    let mut chain = RecordChain::new(context);
    chain.append_all(conn, 0, message_records(messages).chain(behind.records()))?;
    conn.execute(
        "UPDATE contexts SET base_session = NULL, saved_session = nullif(saved_session, ?2),
             saved_messages = iif(saved_session = ?2, 0, saved_messages), last_record = ?3 WHERE id = ?1",
        params![context.0, session.as_bytes(), chain.newest()],
    )?;
    Ok(())
}
