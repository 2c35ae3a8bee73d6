//! Reads the records of a context back, the newest first.

use bytes::Bytes;
use chorus_base::error::Result;
use chorus_journal::{NumberedRecords, RecordCursor, RecordPosition, decode_record, unreadable_record};
use chorus_session::stored_message::ContextNo;
use deadpool_postgres::Object;
use tokio_postgres::Row;

use crate::errors::read_failed;
use crate::route::Route;
use crate::statement::read;

/// Records of a context that are read first, before all others.
pub(crate) const NEWEST_RECORDS: i64 = 1024;

/// Limit of records that are read in one go.
const MAX_BATCH_RECORDS: i64 = 4096;

/// Number of a context's newest record, or `None` if it has none.
pub(crate) async fn newest_number(client: &Object, route: Route, context: ContextNo) -> Result<Option<i64>> {
    let sql = "SELECT last_record FROM contexts WHERE id = $1";
    let rows = read(client, route, sql, &[&context.0]).await.map_err(|e| read_failed(&e))?;
    Ok(rows.first().map(|row| row.get::<_, i64>(0)).filter(|number| *number >= 0))
}

/// Reads at most `limit` records from `from` back. Returns them in order, and the cursor of the record before them.
pub(crate) async fn read_batch(
    client: &Object,
    route: Route,
    context: ContextNo,
    from: i64,
    limit: i64,
) -> Result<(NumberedRecords, Option<RecordCursor>)> {
    let sql = "SELECT number, before, envelope FROM records WHERE context_id = $1 AND number <= $2
         ORDER BY number DESC LIMIT $3";
    let rows = read(client, route, sql, &[&context.0, &from, &limit]).await.map_err(|e| read_failed(&e))?;
    if rows.len() < 64 {
        return decode(context, from, &rows);
    }
    chorus_runtime::run_blocking(move || decode(context, from, &rows)).await
}

/// Decodes rows, the newest first, of which the first must be `next`.
fn decode(context: ContextNo, mut next: i64, rows: &[Row]) -> Result<(NumberedRecords, Option<RecordCursor>)> {
    let mut records = Vec::with_capacity(rows.len());
    for row in rows {
        let number: i64 = row.get(0);
        if number != next {
            return Err(unreadable_record("one in the middle of a context is missing"));
        }
        let before: i64 = row.get(1);
        if before >= number {
            return Err(unreadable_record(format_args!("number {number} is out of order")));
        }
        let number = u32::try_from(number).map_err(unreadable_record)?;
        let place = RecordPosition { before: None, number };
        let (of, record) = decode_record(row.get(2), place, Bytes::copy_from_slice)?;
        if of.is_some_and(|of| of != context) {
            return Err(unreadable_record(format_args!("number {number} belongs to another context")));
        }
        records.push((number, record));
        next = before;
    }
    if rows.is_empty() {
        return Err(unreadable_record("the newest of a context is missing"));
    }
    let after = records.last().map(|(number, _)| *number);
    records.reverse();
    Ok((records, (next >= 0).then_some(RecordCursor { next, after })))
}

/// Reads all records from `cursor` back to the first, in order, in batches.
pub(crate) async fn read_all(
    client: &Object,
    route: Route,
    context: ContextNo,
    cursor: RecordCursor,
) -> Result<Vec<NumberedRecords>> {
    let (mut batches, mut next) = (Vec::new(), Some(cursor));
    while let Some(cursor) = next {
        let (batch, before) = read_batch(client, route, context, cursor.next, MAX_BATCH_RECORDS).await?;
        batches.push(batch);
        next = before;
    }
    batches.reverse();
    Ok(batches)
}
