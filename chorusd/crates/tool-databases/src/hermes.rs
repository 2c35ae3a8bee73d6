//! state.db of Hermes. The document is a line of `hermes sessions export`, with the messages that a compaction replaced.

use std::io::Write;

use rusqlite::{Connection, OptionalExtension as _};

use crate::columns::{self, write_fields};
use crate::{ConversationEntry, DatabaseError, Result};

const SESSION_FIELDS: [&str; 17] = [
    "id",
    "source",
    "model",
    "parent_session_id",
    "started_at",
    "ended_at",
    "end_reason",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "api_call_count",
    "estimated_cost_usd",
    "actual_cost_usd",
    "cwd",
    "git_branch",
    "title",
];

const MESSAGE_FIELDS: [&str; 12] = [
    "id",
    "role",
    "content",
    "tool_call_id",
    "tool_calls",
    "tool_name",
    "timestamp",
    "finish_reason",
    "reasoning",
    "reasoning_details",
    "active",
    "compacted",
];

/// Lists the conversations. An undone turn and a compaction change rows in place.
pub(crate) fn list(connection: &Connection) -> Result<Vec<ConversationEntry>> {
    let known = columns::of_table(connection, "messages")?;
    let active = if known.has("active") { "ifnull(sum(active), 0)" } else { "0" };
    let mut statement = connection.prepare(&format!(
        "select id, ifnull(title, ''), (select count(*) || '-' || ifnull(max(id), 0) || '-' || {active} \
         from messages where session_id = sessions.id) from sessions order by started_at, rowid",
    ))?;
    let rows = statement.query_map([], |row| {
        let (title, messages): (String, String) = (row.get(1)?, row.get(2)?);
        Ok(ConversationEntry { id: row.get(0)?, changed: format!("{messages}/{title}") })
    })?;
    Ok(rows.collect::<std::result::Result<_, _>>()?)
}

pub(crate) fn write_document(connection: &Connection, id: &str, out: &mut dyn Write) -> Result<()> {
    let wanted = columns::of_table(connection, "sessions")?.select(&SESSION_FIELDS);
    let head = connection.query_row(&format!("select {wanted} from sessions where id = ?1"), [id], |row| {
        let mut head = Vec::new();
        Ok(write_fields(&mut head, row, &SESSION_FIELDS, &[]).map(|()| head))
    });
    let head = head.optional()?.ok_or_else(|| DatabaseError::NoConversation(id.to_owned()))??;
    out.write_all(b"{")?;
    out.write_all(&head)?;
    out.write_all(b",\"messages\":[")?;
    let known = columns::of_table(connection, "messages")?;
    let wanted = known.select(&MESSAGE_FIELDS);
    // Rows that are neither active nor compacted were undone.
    let kept = if known.has("active") && known.has("compacted") { "(active = 1 or compacted = 1)" } else { "1" };
    let mut messages = connection
        .prepare(&format!("select {wanted} from messages where session_id = ?1 and {kept} order by messages.id"))?;
    let mut rows = messages.query([id])?;
    let mut comma = "";
    while let Some(row) = rows.next()? {
        write!(out, "{comma}\n{{")?;
        comma = ",";
        write_fields(out, row, &MESSAGE_FIELDS, &["tool_calls", "reasoning_details"])?;
        out.write_all(b"}")?;
    }
    out.write_all(b"\n]}\n")?;
    Ok(())
}
