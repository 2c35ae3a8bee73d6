//! Integrity check of the records of all contexts: each record can be read, each chain leads from its newest record to
//! its first, in order, with as many messages as were acknowledged, and every record is in a chain. Works on damaged
//! databases as far as they can be read.

use std::collections::HashMap;

use bytes::Bytes;
use chorus_journal::{ContextRow, DecodedRecord, RecordPosition, decode_record};
use chorus_session::stored_message::ContextNo;
use rusqlite::{Connection, Row};

use super::contexts_table;

use crate::sqlite::StoreResult;

/// Result of a check.
#[derive(Debug, Default)]
pub struct CheckReport {
    pub records: u64,
    /// All live contexts, intact or broken.
    pub contexts: Vec<CheckedContext>,
    /// Number of records that belong to no existing context.
    pub orphans: u64,
    /// How often unreadable rows had to be skipped.
    pub holes: u64,
}

/// A context and its records.
#[derive(Debug)]
pub struct CheckedContext {
    pub head: ContextRow,
    /// Why the context cannot be read back; `None` if it can.
    pub broken: Option<String>,
    /// Row ids of its records in the order of arrival, including those outside of its chain.
    pub(super) rows: Vec<i64>,
    /// Row ids of those that are in no chain, which trimming would never delete.
    pub(super) unchained: Vec<i64>,
}

impl CheckReport {
    /// The contexts that cannot be read back.
    pub fn broken(&self) -> impl Iterator<Item = &CheckedContext> {
        self.contexts.iter().filter(|found| found.broken.is_some())
    }
}

/// A record without its content.
struct RecordLink {
    id: i64,
    place: RecordPosition,
    /// The context that the record names.
    of: Option<ContextNo>,
    kind: LinkKind,
    visited: bool,
}

enum LinkKind {
    Message,
    Session(u64),
    Rewind(u64),
    Unrewind,
    Other,
    /// Why the record cannot be read.
    Unreadable(String),
}

/// Checks all contexts of the journal `conn`.
///
/// # Errors
/// Fails if nothing of the database can be read.
pub fn check(conn: &Connection) -> StoreResult<CheckReport> {
    // Read from one snapshot, because the writer may be working meanwhile.
    let snapshot = conn.unchecked_transaction()?;
    let mut holes = 0;
    let mut links = Vec::new();
    holes += for_each_readable(
        &snapshot,
        "SELECT id, before, number, envelope FROM records WHERE id >= ?1 ORDER BY id",
        |row| {
            links.push(read_link(row)?);
            Ok(())
        },
    )?;
    let (mut heads, mut ends) = (Vec::new(), Vec::new());
    let select = contexts_table::select_rows(&snapshot)?;
    holes += for_each_readable(&snapshot, &format!("{select} WHERE id >= ?1 ORDER BY id"), |row| {
        heads.push(contexts_table::read_row(row)?);
        Ok(())
    })?;
    holes += for_each_readable(
        &snapshot,
        "SELECT id, last_record, ended FROM contexts WHERE id >= ?1 ORDER BY id",
        |row| {
            ends.push((ContextNo(row.get(0)?), row.get::<_, Option<i64>>(1)?, row.get::<_, bool>(2)?));
            Ok(())
        },
    )?;
    let mut checked = CheckReport { records: links.len() as u64, holes, ..CheckReport::default() };
    let mut heads: HashMap<ContextNo, ContextRow> = heads.into_iter().map(|head| (head.context, head)).collect();
    for (context, newest, ended) in ends {
        let (rows, broken) = follow_chain(&mut links, context, newest);
        if ended {
            continue;
        }
        let Some(head) = heads.remove(&context) else { continue };
        let broken = broken.or_else(|| compare_message_count(&links, &rows, &head));
        checked.contexts.push(CheckedContext { head, broken, rows, unchained: Vec::new() });
    }
    assign_unchained(&mut checked, &links);
    checked.contexts.iter_mut().for_each(|found| found.rows.sort_unstable());
    Ok(checked)
}

/// Follows a chain from its newest record. Returns its row ids, and the first problem.
fn follow_chain(links: &mut [RecordLink], context: ContextNo, newest: Option<i64>) -> (Vec<i64>, Option<String>) {
    let (mut rows, mut broken, mut after) = (Vec::new(), None, None);
    let mut next = newest;
    while let Some(id) = next {
        let at = links.binary_search_by_key(&id, |link| link.id);
        let Some(link) = at.ok().and_then(|at| links.get_mut(at)) else {
            broken.get_or_insert_with(|| "one of its records is missing".into());
            break;
        };
        if link.visited || link.of.is_some_and(|of| of != context) {
            broken.get_or_insert_with(|| "its records refer to another context".into());
            break;
        }
        if let LinkKind::Unreadable(why) = &link.kind {
            broken.get_or_insert_with(|| why.clone());
        }
        if after.is_some_and(|after| after <= link.place.number) {
            broken.get_or_insert_with(|| format!("its records are out of order at number {}", link.place.number));
        }
        link.visited = true;
        after = Some(link.place.number);
        rows.push(id);
        next = link.place.before;
    }
    (rows, broken)
}

/// Returns a description if the number of messages differs from the one in the context's row.
fn compare_message_count(links: &[RecordLink], rows: &[i64], head: &ContextRow) -> Option<String> {
    let (mut messages, mut rewound) = (0_u64, Vec::new());
    for id in rows.iter().rev() {
        match links.binary_search_by_key(id, |link| link.id).ok().map(|at| &links[at].kind) {
            Some(LinkKind::Message) => {
                messages += 1;
                rewound.clear();
            }
            Some(LinkKind::Session(held)) => messages += held,
            Some(LinkKind::Rewind(keep)) => {
                rewound.push(messages);
                messages = messages.min(*keep);
            }
            Some(LinkKind::Unrewind) => messages = rewound.pop().unwrap_or(messages),
            _ => {}
        }
    }
    (messages != head.totals.messages).then(|| format!("expected {} messages, found {messages}", head.totals.messages))
}

/// Assigns records outside of every chain to the contexts that they belong to.
fn assign_unchained(checked: &mut CheckReport, links: &[RecordLink]) {
    for link in links.iter().filter(|link| !link.visited) {
        // Records of earlier releases name no context. Such a record is assigned to a broken context whose first record
        // has a higher row id, if there is exactly one.
        let older =
            |found: &CheckedContext| found.broken.is_some() && found.rows.last().is_none_or(|first| *first > link.id);
        let at = match link.of {
            Some(of) => checked.contexts.iter().position(|found| found.head.context == of),
            None => {
                let mut broken = checked.contexts.iter().enumerate().filter(|(_, found)| older(found));
                broken.next().map(|(at, _)| at).filter(|_| broken.next().is_none())
            }
        };
        let Some(found) = at.and_then(|at| checked.contexts.get_mut(at)) else {
            checked.orphans += 1;
            continue;
        };
        found.broken.get_or_insert_with(|| "some of its records are not in its chain".into());
        // Insert it in front, because the chain ends with its first record, which is compared above.
        found.rows.insert(0, link.id);
        found.unchained.push(link.id);
    }
}

fn read_link(row: &Row<'_>) -> rusqlite::Result<RecordLink> {
    let place = RecordPosition { before: row.get(1)?, number: row.get(2)? };
    let (of, kind) = match decode_record(row.get_ref(3)?.as_blob().unwrap_or_default(), place, Bytes::copy_from_slice) {
        Ok((of, entry)) => (of, link_kind(&entry)),
        Err(failure) => (None, LinkKind::Unreadable(failure.message)),
    };
    Ok(RecordLink { id: row.get(0)?, place, of, kind, visited: false })
}

fn link_kind(entry: &DecodedRecord) -> LinkKind {
    match entry {
        DecodedRecord::Message(_) => LinkKind::Message,
        DecodedRecord::Session { messages, .. } => LinkKind::Session(*messages),
        DecodedRecord::Rewind { keep, .. } => LinkKind::Rewind(*keep),
        DecodedRecord::Unrewind => LinkKind::Unrewind,
        _ => LinkKind::Other,
    }
}

/// Calls `take` with every readable row of `select`, in order; the statement's parameter is the first key. Returns how
/// often rows had to be skipped.
fn for_each_readable(
    conn: &Connection,
    select: &str,
    mut take: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> StoreResult<u64> {
    let mut statement = conn.prepare(select)?;
    let (mut from, mut holes) = (i64::MIN, 0);
    loop {
        let mut rows = statement.query([from])?;
        let mut last = None;
        loop {
            match rows.next() {
                Ok(None) => return Ok(holes),
                Ok(Some(row)) if take(row).is_ok() => last = row.get(0).ok().or(last),
                _ => break,
            }
        }
        drop(rows);
        holes += 1;
        let Some(next) = find_readable_after(&mut statement, last.unwrap_or(from.max(0))) else { return Ok(holes) };
        from = next;
    }
}

/// Finds the first key after `bad` from which rows can be read again, by exponential and binary search; keys have
/// hardly any gaps.
fn find_readable_after(statement: &mut rusqlite::Statement<'_>, bad: i64) -> Option<i64> {
    let mut reads = |from: i64| statement.query([from]).is_ok_and(|mut rows| rows.next().is_ok());
    let mut step = 2;
    while !reads(bad.checked_add(step)?) {
        step = step.checked_mul(2)?;
    }
    let (mut bad, mut good) = (bad + step / 2, bad + step);
    while bad + 1 < good {
        let middle = bad + (good - bad) / 2;
        if reads(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Some(good)
}
