//! Sessions and those that wait for a summary. The numbers of rows stay, because the search index knows them.

use chorus_base::error::{Error, Result};
use chorus_catalog::HeaderFields;
use chorus_journal::to_nanos;
use chorus_proto::{SessionHeader, Trigger};

use crate::table::{Column, Derived, File, Form, Table};
use crate::value::Kind::{Bool, Id, Int, Text, Texts};
use crate::value::{Row, Value};

/// Position of the column with the header.
pub(crate) const HEADER: usize = 6;

/// Position of the column with the id.
pub(crate) const ID: usize = 1;

pub(super) const TABLES: &[Table] = &[
    Table::new(
        "sessions",
        File::Catalog,
        1,
        &[
            Column::renamed("rowid", "serial", Int),
            Column::new("id", Id),
            Column::new("agent_id", Id),
            Column::new("session_id", Text),
            // In PostgreSQL that of `main` is the agent's.
            Column::new("conversation_id", Id)
                .read_postgres("nullif(conversation_id, agent_id)")
                .write_postgres("coalesce(?, c2)"),
            Column::new("saved_at", Int),
            Column::new("header", Text),
            Column::new("sha256", Text),
            // A copy of a session that a bucket has is another file.
            Column::new("file_stamp", Text).not_compared(),
            Column::new("corrupt", Text),
            Column::new("last_used_at", Int),
            Column::new("place", Int),
        ],
    )
    .derived(Derived { columns: DERIVED, values: |row, _| derive(row) })
    .form(Form::Sessions),
    Table::new("summaries_wanted", File::Catalog, 1, &[Column::new("id", Id), Column::new("described", Bool)]),
];

const DERIVED: &[(&str, crate::value::Kind)] = &[
    ("started_at", Int),
    ("held_at", Int),
    ("messages", Int),
    ("imported", Bool),
    ("conversation_name", Text),
    ("source_program", Text),
    ("source_conversation", Text),
    ("source_revision", Int),
    ("project", Text),
    ("tags", Texts),
    ("search_text", Text),
];

/// Reads the header of a row.
///
/// # Errors
/// Fails with the name of the session if it cannot be read.
pub(crate) fn header_of(row: &[Value]) -> Result<SessionHeader> {
    let name = || row.get(3).and_then(Value::as_text).unwrap_or_default();
    serde_json::from_str(row.get(HEADER).and_then(Value::as_text).unwrap_or_default())
        .map_err(|e| Error::internal(format!("the header of the session {} cannot be read: {e}", name())))
}

/// The columns by which PostgreSQL finds a session.
fn derive(row: &[Value]) -> Result<Row> {
    let header = header_of(row)?;
    let json = row[HEADER].as_text().unwrap_or_default();
    let fields = HeaderFields::parse(json).ok_or_else(|| Error::internal("a header without its fields"))?;
    let text = |value: Option<&str>| value.map_or(Value::Null, |value| Value::Text(value.to_owned()));
    let source = header.source.as_ref();
    Ok(vec![
        Value::Int(to_nanos(header.started_at)),
        Value::Int(to_nanos(fields.held_at())),
        Value::Int(header.message_count.cast_signed()),
        Value::Int(i64::from(header.trigger == Trigger::Import)),
        text(header.conversation.as_ref().map(|conversation| &*conversation.name)),
        text(source.map(|source| &*source.program)),
        text(source.map(|source| &*source.conversation)),
        source.map_or(Value::Null, |source| Value::Int(source.revision.into())),
        text(source.and_then(|source| source.project.as_deref())),
        Value::Texts(header.tags.clone()),
        // PostgreSQL does not store the character NUL.
        Value::Text(fields.search_text(&header.session_id).replace('\0', "\u{fffd}")),
    ])
}
