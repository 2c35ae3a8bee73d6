//! What a damaged catalog alone knows and still gives: the newest rows of its audit log.

use std::path::Path;

use super::catalog::{AuditHead, Walk, each_after, insert_audit, newest_audit};
use super::sqlite;
use crate::failure::Result;

/// Carries rows of the audit log from the database `from` into `to`, as far as they can be read and each fits the one before it; says how
/// many. Blocks.
///
/// # Errors
/// A database that cannot be written.
pub fn audits(from: &Path, to: &Path, migrations: sqlite::Migrations) -> Result<usize> {
    let Ok(damaged) = sqlite::open_reader(from) else { return Ok(0) };
    let head = match to.exists().then(|| sqlite::open_reader(to)) {
        Some(copy) => copy.and_then(|copy| newest_audit(&copy)).ok().flatten(),
        None => None,
    };
    let head = head.unwrap_or(AuditHead::NONE);
    let (mut walk, mut rows) = (Walk::after(head), Vec::new());
    // What came before a page that cannot be read is kept.
    let _ = each_after(&damaged, head.id, |entry| {
        walk.step(&entry);
        if walk.is_intact() {
            rows.push(entry);
        }
        walk.is_intact()
    });
    if rows.is_empty() {
        return Ok(0);
    }
    let mut conn = sqlite::open(to, migrations)?;
    let all = conn.transaction()?;
    for row in &rows {
        insert_audit(&all, row)?;
    }
    all.commit()?;
    Ok(rows.len())
}
