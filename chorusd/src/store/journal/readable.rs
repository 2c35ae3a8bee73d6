//! Everything of a context that can still be read, whatever became of its chain.

use bytes::Bytes;
use chorus_proto::WorkingSet;
use rusqlite::{Connection, OptionalExtension as _};
use uuid::Uuid;

use super::chain::{Entry, entry};
use super::check::Found;
use super::record::Place;
use crate::failure::Result;
use crate::message::Stored;

/// The content that a context still has, in the order of arrival.
#[derive(Debug, Default)]
pub struct Readable {
    /// The session whose first messages came before everything else.
    pub session: Option<(Uuid, u64)>,
    pub messages: Vec<Stored>,
    pub working_set: WorkingSet,
    /// Records that cannot be read.
    pub unreadable: u64,
    /// Rows of records that are in no chain.
    pub outside: Vec<i64>,
}

/// Reads what `found` has. Rewinds are not followed: what they hid is in it.
///
/// # Errors
/// A database that cannot be read.
pub fn readable(conn: &Connection, found: &Found) -> Result<Readable> {
    let mut all = Readable { outside: found.outside.clone(), ..Readable::default() };
    let mut statement = conn.prepare("SELECT before, number, envelope FROM records WHERE id = ?1")?;
    for id in &found.rows {
        let read = statement.query_row([id], |row| {
            let place = Place { before: row.get(0)?, number: row.get(1)? };
            Ok((place, Bytes::from(row.get::<_, Vec<u8>>(2)?)))
        });
        let Some((place, envelope)) = read.optional().unwrap_or_default() else {
            all.unreadable += 1;
            continue;
        };
        match entry(&envelope, place) {
            Ok((_, Entry::Message(message))) => all.messages.push(message),
            Ok((_, Entry::Session { id, messages })) => all.session = Some((id, messages)),
            Ok((_, Entry::WorkingSet(set))) => all.working_set = set,
            Ok(_) => {}
            Err(_) => all.unreadable += 1,
        }
    }
    Ok(all)
}
