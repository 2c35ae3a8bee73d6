//! Salvages the readable content of a context, whether its chain is intact or not.

use bytes::Bytes;
use chorus_journal::{DecodedRecord, RecordPosition, decode_record};
use chorus_proto::WorkingSet;
use chorus_session::notes::apply_changes;
use chorus_session::stored_message::StoredMessage;
use rusqlite::{Connection, OptionalExtension as _};
use uuid::Uuid;

use super::check::CheckedContext;

use crate::sqlite::StoreResult;

/// The salvaged content of a context, in order of arrival.
#[derive(Debug, Default)]
pub struct SalvagedContent {
    /// The session whose first messages came first, and their number.
    pub session: Option<(Uuid, u64)>,
    pub messages: Vec<StoredMessage>,
    pub working_set: WorkingSet,
    /// Number of records that cannot be read.
    pub unreadable: u64,
    /// Row ids of records that are in no chain.
    pub unchained: Vec<i64>,
}

/// Reads the records of `found`. Ignores rewinds, so the result includes the messages that they hid.
pub fn salvage_context(conn: &Connection, found: &CheckedContext) -> StoreResult<SalvagedContent> {
    let mut all = SalvagedContent { unchained: found.unchained.clone(), ..SalvagedContent::default() };
    let mut statement = conn.prepare("SELECT before, number, envelope FROM records WHERE id = ?1")?;
    for id in &found.rows {
        let read = statement.query_row([id], |row| {
            let place = RecordPosition { before: row.get(0)?, number: row.get(1)? };
            Ok((place, Bytes::from(row.get::<_, Vec<u8>>(2)?)))
        });
        let Some((place, envelope)) = read.optional().unwrap_or_default() else {
            all.unreadable += 1;
            continue;
        };
        match decode_record(&envelope, place, |json| envelope.slice_ref(json)) {
            Ok((_, DecodedRecord::Message(message))) => all.messages.push(message),
            Ok((_, DecodedRecord::Session { id, messages })) => all.session = Some((id, messages)),
            Ok((_, DecodedRecord::WorkingSet(set))) => all.working_set = *set,
            Ok((_, DecodedRecord::Notes(changes))) => apply_changes(&mut all.working_set, &changes),
            Ok(_) => {}
            Err(_) => all.unreadable += 1,
        }
    }
    Ok(all)
}
