//! state.vscdb of Cursor: JSON values by keys. The document has the conversation (`cursor`) and its messages (`bubbles`).
//!
//! The database can have many gigabytes, and credentials in a table beside: only the keys of conversations are read.

use std::io::Write;

use rusqlite::{Connection, OptionalExtension as _};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::columns::{self, is_json};
use crate::{ConversationEntry, DatabaseError, Result};

/// The beginning of the keys of conversations. Their ids follow.
const COMPOSER: &str = "composerData:";

/// The end of a range of keys that begin with [`COMPOSER`].
const COMPOSER_END: &str = "composerData;";

/// The fields of a conversation that are read.
#[derive(Deserialize)]
struct Composer<'a> {
    #[serde(rename = "fullConversationHeadersOnly", default)]
    headers: Vec<BubbleHeader>,
    /// The messages themselves, in old versions.
    #[serde(borrow, default)]
    conversation: Vec<&'a RawValue>,
    #[serde(rename = "lastUpdatedAt", borrow, default)]
    last_updated_at: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct BubbleHeader {
    #[serde(rename = "bubbleId")]
    id: String,
}

fn bubble_key(conversation: &str, header: &BubbleHeader) -> String {
    format!("bubbleId:{conversation}:{}", header.id)
}

/// Lists the conversations that have messages. Their row is replaced when a message is added, and while a reply is written.
pub(crate) fn list(connection: &Connection) -> Result<Vec<ConversationEntry>> {
    let mut statement = connection
        .prepare("select key, cast(value as text) from cursorDiskKV where key >= ?1 and key < ?2 order by rowid")?;
    let mut bubble = connection.prepare("select 1 from cursorDiskKV where key = ?1")?;
    let mut rows = statement.query([COMPOSER, COMPOSER_END])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let (key, value): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        let Some(value) = value else { continue };
        let Ok(composer) = serde_json::from_str::<Composer<'_>>(&value) else { continue };
        let id = key.strip_prefix(COMPOSER).unwrap_or(&key).to_owned();
        let mut is_empty = composer.conversation.is_empty();
        for header in &composer.headers {
            is_empty = is_empty && !bubble.exists([bubble_key(&id, header)])?;
        }
        if is_empty {
            continue;
        }
        let changed = composer.last_updated_at.map_or("", RawValue::get);
        let count = composer.headers.len() + composer.conversation.len();
        entries.push(ConversationEntry { id, changed: format!("{changed}/{count}/{}", value.len()) });
    }
    Ok(entries)
}

pub(crate) fn write_document(connection: &Connection, id: &str, out: &mut dyn Write) -> Result<()> {
    let mut values = connection.prepare("select cast(value as text) from cursorDiskKV where key = ?1")?;
    let mut value = |key: String| -> Result<Option<String>> {
        Ok(values.query_row([key], |row| row.get::<_, Option<String>>(0)).optional()?.flatten())
    };
    let found = value(format!("{COMPOSER}{id}"))?.filter(|value| is_json(value));
    let text = found.ok_or_else(|| DatabaseError::NoConversation(id.to_owned()))?;
    let composer: Composer<'_> = serde_json::from_str(&text)?;
    let header = composer_header(connection, id)?.unwrap_or_else(|| "null".to_owned());
    write!(out, "{{\"cursor\":{{\"id\":{},\"header\":{header}", serde_json::to_string(id)?)?;
    write_known_fields(out, &text)?;
    out.write_all(b"},\"bubbles\":[")?;
    let mut comma = "";
    for bubble in composer.conversation {
        write!(out, "{comma}\n{bubble}")?;
        comma = ",";
    }
    for header in composer.headers {
        // The list can name messages that do not exist.
        if let Some(bubble) = value(bubble_key(id, &header))?.filter(|bubble| is_json(bubble)) {
            write!(out, "{comma}\n{bubble}")?;
            comma = ",";
        }
    }
    out.write_all(b"\n]}\n")?;
    Ok(())
}

/// The fields of a conversation that say what it is.
const FIELDS: [&str; 6] = ["name", "createdAt", "lastUpdatedAt", "modelConfig", "workspaceIdentifier", "unifiedMode"];

fn write_known_fields(out: &mut dyn Write, composer: &str) -> Result<()> {
    let fields: std::collections::HashMap<String, &RawValue> = serde_json::from_str(composer)?;
    for name in FIELDS {
        if let Some(value) = fields.get(name) {
            write!(out, ",\"{name}\":{value}")?;
        }
    }
    Ok(())
}

/// Returns the entry of newer versions in the list of conversations, which names the directory.
fn composer_header(connection: &Connection, id: &str) -> Result<Option<String>> {
    let known = columns::of_table(connection, "composerHeaders")?;
    if !known.has("composerId") || !known.has("value") {
        return Ok(None);
    }
    let select = "select cast(value as text) from composerHeaders where composerId = ?1";
    let value = connection.query_row(select, [id], |row| row.get::<_, Option<String>>(0)).optional()?.flatten();
    Ok(value.filter(|value| is_json(value)))
}
