//! Finds the short ids of sessions.

use chorus_catalog::ShortId;
use rusqlite::{Connection, OptionalExtension as _};
use uuid::Uuid;

use crate::sqlite::StoreResult;

/// Returns the short id of each session: a prefix that no other session's id shares.
pub(super) fn select_short_ids(conn: &Connection, ids: &[Uuid]) -> StoreResult<Vec<ShortId>> {
    let mut before = conn.prepare_cached("SELECT id FROM sessions WHERE id < ?1 ORDER BY id DESC LIMIT 1")?;
    let mut after = conn.prepare_cached("SELECT id FROM sessions WHERE id > ?1 ORDER BY id LIMIT 1")?;
    ids.iter()
        .map(|id| {
            let mut neighbours = [None; 2];
            for (found, neighbour) in neighbours.iter_mut().zip([&mut before, &mut after]) {
                let other: Option<[u8; 16]> = neighbour.query_row([id.as_bytes()], |row| row.get(0)).optional()?;
                *found = other.map(Uuid::from_bytes);
            }
            Ok(ShortId::new(*id, neighbours.into_iter().flatten()))
        })
        .collect()
}
