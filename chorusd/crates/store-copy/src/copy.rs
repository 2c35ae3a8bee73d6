//! Copies tables, and compares them afterwards.
//!
//! The rows of a table are copied in the order of their key. So what an earlier attempt has copied is the first rows of the
//! table: they are compared with the source, and the others follow. If they are not the same, because a daemon has run since,
//! the table is copied from its start.

use chorus_base::error::{Error, Result};
use chorus_base::hex;
use chorus_proto::ErrorKind;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::postgres::{INSERT_BYTES, INSERT_ROWS};
use crate::progress::Meter;
use crate::side::Side;
use crate::stream::RowStream;
use crate::table::Table;
use crate::tables;
use crate::value::{Row, Value};

/// A table that both databases have, row for row.
#[derive(Debug, Serialize)]
pub struct ComparedTable {
    pub name: &'static str,
    pub rows: u64,
    /// Hash of all rows in the order of their key, the same in both.
    pub sha256: String,
}

/// Counts the rows of all tables.
pub(crate) async fn count_all(source: &Side) -> Result<u64> {
    let mut total = 0;
    for table in tables::all() {
        total += source.count(table).await?;
    }
    Ok(total)
}

/// Copies all tables.
pub(crate) async fn copy_all(source: &Side, target: &Side, meter: &mut Meter<'_>) -> Result<()> {
    let mut contexts_changed = false;
    for table in tables::all() {
        let must_clear = contexts_changed && table.name == "records";
        let cleared = copy_table(source, target, table, must_clear, meter).await?;
        contexts_changed |= cleared && table.name == "contexts";
    }
    Ok(())
}

/// Copies a table. Returns whether rows of an earlier attempt were deleted.
async fn copy_table(
    source: &Side,
    target: &Side,
    table: &'static Table,
    must_clear: bool,
    meter: &mut Meter<'_>,
) -> Result<bool> {
    let total = source.count(table).await?;
    let mut rows = source.stream(table).await?;
    let same = if must_clear {
        None
    } else {
        let mut copied = target.stream_copied(table).await?;
        count_same(table, &mut rows, &mut copied).await?
    };
    let continues = same.is_some_and(|same| same > 0) && target.can_continue(table, total)?;
    let cleared = same.is_none() || (same != Some(0) && !continues);
    if cleared {
        target.clear(table).await?;
        rows = source.stream(table).await?;
    }
    if continues {
        meter.add(same.unwrap_or(0));
    } else {
        target.begin(table, total)?;
    }
    insert_rest(target, table, &mut rows, meter).await?;
    Ok(cleared)
}

/// Counts the rows of the target, if they are the first ones of the source.
async fn count_same(table: &Table, rows: &mut RowStream, copied: &mut RowStream) -> Result<Option<u64>> {
    let mut same = 0;
    while let Some(copied) = copied.next().await? {
        match rows.next().await? {
            Some(row) if table.are_same(&row, &copied) => same += 1,
            _ => return Ok(None),
        }
    }
    Ok(Some(same))
}

async fn insert_rest(target: &Side, table: &Table, rows: &mut RowStream, meter: &mut Meter<'_>) -> Result<()> {
    let (mut batch, mut bytes): (Vec<Row>, usize) = (Vec::new(), 0);
    while let Some(row) = rows.next().await? {
        bytes += row.iter().map(Value::size).sum::<usize>();
        batch.push(row);
        if batch.len() >= INSERT_ROWS || bytes >= INSERT_BYTES {
            target.insert(table, &batch).await?;
            meter.add(batch.len() as u64);
            batch.clear();
            bytes = 0;
        }
    }
    target.insert(table, &batch).await?;
    meter.add(batch.len() as u64);
    Ok(())
}

/// Compares all tables, row for row.
///
/// # Errors
/// `storage_failed` with the first row that is not in both.
pub(crate) async fn compare_all(source: &Side, target: &Side, meter: &mut Meter<'_>) -> Result<Vec<ComparedTable>> {
    let mut compared = Vec::new();
    for table in tables::all() {
        compared.push(compare(source, target, table, meter).await?);
    }
    Ok(compared)
}

async fn compare(source: &Side, target: &Side, table: &'static Table, meter: &mut Meter<'_>) -> Result<ComparedTable> {
    let (mut rows, mut copied) = (source.stream(table).await?, target.stream(table).await?);
    let (mut sum, mut count) = (Sha256::new(), 0);
    loop {
        match (rows.next().await?, copied.next().await?) {
            (None, None) => break,
            (Some(row), Some(copy)) if table.are_same(&row, &copy) => {
                row.iter().zip(table.columns).filter(|(_, column)| column.is_compared).for_each(|(value, _)| {
                    value.hash_into(&mut sum);
                });
                count += 1;
                meter.add(1);
            }
            (row, copy) => {
                let name = row.or(copy).map_or_else(String::new, |row| table.describe(&row));
                let what = format!("the copy is not the same as the original: {name}");
                return Err(Error::new(ErrorKind::StorageFailed, what).hint(
                    "the configuration is unchanged; run the command again while no daemon uses either database",
                ));
            }
        }
    }
    Ok(ComparedTable { name: table.name, rows: count, sha256: hex(&sum.finalize()) })
}
