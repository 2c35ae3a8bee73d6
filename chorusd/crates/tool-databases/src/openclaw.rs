//! openclaw-agent.sqlite. The document has the lines of the transcript files of earlier versions.

use std::io::Write;

use rusqlite::Connection;

use crate::{ConversationEntry, DatabaseError, Result};

/// Lists the conversations.
pub(crate) fn list(connection: &Connection) -> Result<Vec<ConversationEntry>> {
    let mut statement = connection.prepare(
        "select session_id, (select count(*) || '-' || max(seq) from transcript_events as events \
         where events.session_id = windows.session_id) as events from session_windows as windows \
         where events is not null order by created_at, session_id",
    )?;
    let rows = statement.query_map([], |row| Ok(ConversationEntry { id: row.get(0)?, changed: row.get(1)? }))?;
    Ok(rows.collect::<std::result::Result<_, _>>()?)
}

/// Writes the lines. An event that is stored in compressed form becomes a line that says so.
pub(crate) fn write_document(connection: &Connection, id: &str, out: &mut dyn Write) -> Result<()> {
    let mut statement =
        connection.prepare("select event_json from transcript_events where session_id = ?1 order by seq")?;
    let mut rows = statement.query([id])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        match row.get::<_, Option<String>>(0)? {
            // In JSON, a line break stands only between values.
            Some(event) => writeln!(out, "{}", event.replace(['\n', '\r'], " "))?,
            None => writeln!(out, "{{\"type\":\"compressed\"}}")?,
        }
    }
    if count == 0 { Err(DatabaseError::NoConversation(id.to_owned())) } else { Ok(()) }
}
