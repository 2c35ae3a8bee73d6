//! sessions.db of goose. The document is that of `goose session export --format json`.

use std::io::Write;

use rusqlite::{Connection, OptionalExtension as _};

use crate::columns::{self, write_fields};
use crate::{ConversationEntry, DatabaseError, Result};

const SESSION_FIELDS: [&str; 14] = [
    "id",
    "working_dir",
    "name",
    "description",
    "session_type",
    "created_at",
    "updated_at",
    "provider_name",
    "model_config_json",
    "parent_session_id",
    "accumulated_input_tokens",
    "accumulated_output_tokens",
    "accumulated_cache_read_tokens",
    "accumulated_cache_write_tokens",
];

/// Lists the conversations. A compaction writes all messages again, so that their row ids change.
pub(crate) fn list(connection: &Connection) -> Result<Vec<ConversationEntry>> {
    let known = columns::of_table(connection, "sessions")?;
    // Sessions that the user did not want to be kept.
    let shown = if known.has("session_type") { "session_type <> 'hidden'" } else { "1" };
    let mut statement = connection.prepare(&format!(
        "select id, ifnull(updated_at, ''), \
         (select count(*) || '-' || ifnull(min(id), 0) || '-' || ifnull(max(id), 0) from messages where session_id = sessions.id) \
         from sessions where {shown} order by created_at, rowid",
    ))?;
    let rows = statement.query_map([], |row| {
        let (updated, messages): (String, String) = (row.get(1)?, row.get(2)?);
        Ok(ConversationEntry { id: row.get(0)?, changed: format!("{updated}/{messages}") })
    })?;
    Ok(rows.collect::<std::result::Result<_, _>>()?)
}

pub(crate) fn write_document(connection: &Connection, id: &str, out: &mut dyn Write) -> Result<()> {
    let wanted = columns::of_table(connection, "sessions")?.select(&SESSION_FIELDS);
    let head = connection.query_row(&format!("select {wanted} from sessions where id = ?1"), [id], |row| {
        let mut names = SESSION_FIELDS;
        names[8] = "model_config";
        let mut head = Vec::new();
        Ok(write_fields(&mut head, row, &names, &["model_config"]).map(|()| head))
    });
    let head = head.optional()?.ok_or_else(|| DatabaseError::NoConversation(id.to_owned()))??;
    out.write_all(b"{")?;
    out.write_all(&head)?;
    let parent = "select parent.created_at from sessions, sessions as parent \
                  where sessions.id = ?1 and parent.id = sessions.parent_session_id";
    if columns::of_table(connection, "sessions")?.has("parent_session_id")
        && let Some(created_at) = connection.query_row(parent, [id], |row| row.get::<_, String>(0)).optional()?
    {
        write!(out, ",\"parent_created_at\":{}", serde_json::to_string(&created_at)?)?;
    }
    out.write_all(b",\"conversation\":[")?;
    let names = ["message_id", "role", "created_timestamp", "content_json", "metadata_json"];
    let wanted = columns::of_table(connection, "messages")?.select(&names);
    let mut messages = connection.prepare(&format!(
        "select {wanted} from messages where session_id = ?1 order by created_timestamp, messages.id"
    ))?;
    let mut rows = messages.query([id])?;
    let mut comma = "";
    while let Some(row) = rows.next()? {
        let metadata: Option<String> = row.get(4)?;
        if metadata.is_some_and(|metadata| metadata.contains("\"turnContext\":true")) {
            // What the program tells the model at each turn.
            continue;
        }
        write!(out, "{comma}\n{{")?;
        comma = ",";
        let names = ["id", "role", "created", "content", "metadata"];
        write_fields(out, row, &names, &["content", "metadata"])?;
        out.write_all(b"}")?;
    }
    out.write_all(b"\n]}\n")?;
    Ok(())
}
