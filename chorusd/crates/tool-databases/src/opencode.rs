//! opencode.db: sessions, messages and their parts, each a JSON object. The document is that of `opencode export`.

use std::io::Write;

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::json;

use crate::columns::{self, is_json};
use crate::{ConversationEntry, DatabaseError, Result};

/// Lists the conversations. A row is updated in place, with its time, while a reply is written.
pub(crate) fn list(connection: &Connection) -> Result<Vec<ConversationEntry>> {
    let mut statement = connection.prepare(
        "select id, time_updated, \
         (select count(*) || '-' || ifnull(max(time_updated), 0) from message where session_id = session.id), \
         (select count(*) || '-' || ifnull(max(time_updated), 0) from part where session_id = session.id) \
         from session order by time_created, id",
    )?;
    let rows = statement.query_map([], |row| {
        let (session, messages, parts): (i64, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(ConversationEntry { id: row.get(0)?, changed: format!("{session}/{messages}/{parts}") })
    })?;
    Ok(rows.collect::<std::result::Result<_, _>>()?)
}

pub(crate) fn write_document(connection: &Connection, id: &str, out: &mut dyn Write) -> Result<()> {
    let known = columns::of_table(connection, "session")?;
    let wanted = known.select(&["directory", "title", "parent_id", "version", "time_created", "time_updated"]);
    let info = connection.query_row(&format!("select {wanted} from session where id = ?1"), [id], |row| {
        let text = |at: usize| row.get::<_, Option<String>>(at);
        Ok(json!({
            "id": id, "directory": text(0)?, "title": text(1)?, "parentID": text(2)?, "version": text(3)?,
            "time": {"created": row.get::<_, Option<i64>>(4)?, "updated": row.get::<_, Option<i64>>(5)?},
        }))
    });
    let info = info.optional()?.ok_or_else(|| DatabaseError::NoConversation(id.to_owned()))?;
    write!(out, "{{\"info\":{info},\"messages\":[")?;
    let mut messages =
        connection.prepare("select id, data from message where session_id = ?1 order by time_created, id")?;
    let mut parts = connection.prepare("select id, data from part where message_id = ?1 order by id")?;
    let mut rows = messages.query([id])?;
    let mut comma = "";
    while let Some(row) = rows.next()? {
        let message: String = row.get(0)?;
        write!(out, "{comma}\n{{\"info\":")?;
        comma = ",";
        write_object(out, &message, &row.get::<_, String>(1)?)?;
        out.write_all(b",\"parts\":[")?;
        let mut rows = parts.query([&message])?;
        let mut comma = "";
        while let Some(row) = rows.next()? {
            out.write_all(comma.as_bytes())?;
            comma = ",";
            write_object(out, &row.get::<_, String>(0)?, &row.get::<_, String>(1)?)?;
        }
        out.write_all(b"]}")?;
    }
    out.write_all(b"\n]}\n")?;
    Ok(())
}

/// Writes a JSON object with its id, which has a column of its own. A broken one is written without its fields.
fn write_object(out: &mut dyn Write, id: &str, data: &str) -> Result<()> {
    let id = serde_json::to_string(id)?;
    let fields = data.trim().strip_prefix('{').filter(|_| is_json(data));
    match fields.map(str::trim_start) {
        Some(fields) if !fields.starts_with('}') => write!(out, "{{\"id\":{id},{fields}")?,
        _ => write!(out, "{{\"id\":{id}}}")?,
    }
    Ok(())
}
