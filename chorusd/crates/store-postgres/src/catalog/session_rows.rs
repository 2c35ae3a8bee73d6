//! Rows of sessions, and the calls that insert and update them.

use chorus_base::error::{Error, Result};
use chorus_catalog::{BodyRow, HeaderFields, SessionRow};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::{SessionHeader, Trigger};
use tokio_postgres::Row;

use crate::rows::{count, to_bigint};
use crate::statement::{Call, call};

/// Columns of the table `s` that [`read_session`] reads, in order.
pub(super) const COLUMNS: &str = "s.header, s.sha256, s.file_stamp, s.corrupt, s.last_used_at, s.place, s.body_key, \
    s.body_count, s.body_bytes, s.object_bytes, s.body_sha256, s.index_sha256";

/// Number of the [`COLUMNS`].
pub(super) const COLUMN_COUNT: usize = 12;

/// Reads a session from the columns from `first` on; `None` if they are those of no row.
pub(super) fn read_optional(row: &Row, first: usize) -> Result<Option<SessionRow>> {
    let Some(header) = row.get::<_, Option<&str>>(first) else { return Ok(None) };
    let header = serde_json::from_str(header)
        .map_err(|e| Error::internal(format!("the header of a session in PostgreSQL cannot be read: {e}")))?;
    Ok(Some(SessionRow {
        header,
        sha256: row.get(first + 1),
        file_stamp: row.get(first + 2),
        corrupt: row.get(first + 3),
        last_used_at: from_nanos(row.get(first + 4)),
        place: row.get(first + 5),
        body: read_body(row, first + 6),
    }))
}

/// Reads the columns of a body from `first` on; `None` if only a file has the messages.
fn read_body(row: &Row, first: usize) -> Option<BodyRow> {
    Some(BodyRow {
        key: row.get::<_, Option<String>>(first)?,
        messages: count(row, first + 1),
        body_bytes: count(row, first + 2),
        object_bytes: count(row, first + 3),
        sha256: row.get(first + 4),
        index_sha256: row.get(first + 5),
    })
}

/// The call that names the body of a session that was just inserted or has grown; `None` for one that was inserted without a
/// body. A body of other messages than the row has is not named: then they have no body.
pub(super) fn body_call(row: &SessionRow, is_replaced: bool) -> Option<Call> {
    let id = row.header.id;
    match row.body.clone().filter(|body| !is_replaced || body.sha256 == row.sha256) {
        Some(body) => Some(call!(
            "UPDATE sessions SET body_key = $2, body_count = $3, body_bytes = $4, object_bytes = $5, body_sha256 = $6,
                 index_sha256 = $7
             WHERE id = $1 AND ($8 OR body_key IS NULL)",
            id,
            body.key,
            to_bigint(body.messages),
            to_bigint(body.body_bytes),
            to_bigint(body.object_bytes),
            body.sha256,
            body.index_sha256,
            is_replaced,
        )),
        None => is_replaced.then(|| {
            call!(
                "UPDATE sessions SET body_key = NULL, body_count = NULL, body_bytes = NULL, object_bytes = NULL,
                     body_sha256 = NULL, index_sha256 = NULL
                 WHERE id = $1 AND body_key IS NOT NULL",
                id
            )
        }),
    }
}

/// Reads rows that start with [`COLUMNS`].
pub(super) fn read_sessions(rows: &[Row]) -> Result<Vec<SessionRow>> {
    rows.iter().filter_map(|row| read_optional(row, 0).transpose()).collect()
}

/// The parts of a header by which sessions are found.
struct Fields {
    header: String,
    held_at: i64,
    search_text: String,
}

impl Fields {
    fn of(header: &SessionHeader) -> Result<Self> {
        let json = serde_json::to_string(header).map_err(|e| Error::internal(e.to_string()))?;
        let fields = HeaderFields::parse(&json).ok_or_else(|| Error::internal("a header without its fields"))?;
        let (held_at, search_text) = (to_nanos(fields.held_at()), storable(&fields.search_text(&header.session_id)));
        Ok(Self { header: json, held_at, search_text })
    }
}

/// Returns a text that is searched, or searched for, without the character NUL, which PostgreSQL does not store.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Inserts the row of a session, at its place or after all others.
pub(super) fn insert_call(row: &SessionRow, is_last: bool) -> Result<Call> {
    const SQL: &str = "SELECT insert_session($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
        $18, $19, $20, $21, $22, $23)";
    insertion(SQL, row, is_last)
}

/// As [`insert_call`], unless there is a row with the id.
pub(super) fn insert_missing_call(row: &SessionRow) -> Result<Call> {
    const SQL: &str = "SELECT insert_session($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
        $18, $19, $20, $21, $22, $23) WHERE NOT EXISTS (SELECT FROM sessions WHERE id = $1)";
    insertion(SQL, row, false)
}

fn insertion(sql: &'static str, row: &SessionRow, is_last: bool) -> Result<Call> {
    let header = &row.header;
    let fields = Fields::of(header)?;
    let source = header.source.as_ref();
    Ok(call!(
        sql,
        header.id,
        header.agent_id,
        header.session_id.clone(),
        header.conversation.as_ref().map_or(header.agent_id, |conversation| conversation.id),
        to_nanos(header.saved_at),
        to_nanos(row.last_used_at),
        row.place,
        is_last,
        row.sha256.clone(),
        row.file_stamp.clone(),
        row.corrupt.clone(),
        fields.header,
        to_nanos(header.started_at),
        fields.held_at,
        to_bigint(header.message_count),
        header.trigger == Trigger::Import,
        header.conversation.as_ref().map(|conversation| conversation.name.clone()),
        source.map(|source| source.program.clone()),
        source.map(|source| source.conversation.clone()),
        source.map(|source| i64::from(source.revision)),
        source.and_then(|source| source.project.clone()),
        header.tags.clone(),
        fields.search_text,
    ))
}

/// Updates header, stamp and corruption of a session, and if it has grown also its hash and its place.
pub(super) fn update_call(row: &SessionRow, has_grown: bool) -> Result<Call> {
    let header = &row.header;
    let fields = Fields::of(header)?;
    let source = header.source.as_ref();
    Ok(call!(
        "UPDATE sessions SET file_stamp = $2, corrupt = $3, header = $4, started_at = $5, held_at = $6, messages = $7,
             imported = $8, conversation_name = $9, source_program = $10, source_conversation = $11,
             source_revision = $12, project = $13, tags = $14, search_text = $15, sha256 = coalesce($16, sha256),
             place = coalesce($17, place)
         WHERE id = $1",
        header.id,
        row.file_stamp.clone(),
        row.corrupt.clone(),
        fields.header,
        to_nanos(header.started_at),
        fields.held_at,
        to_bigint(header.message_count),
        header.trigger == Trigger::Import,
        header.conversation.as_ref().map(|conversation| conversation.name.clone()),
        source.map(|source| source.program.clone()),
        source.map(|source| source.conversation.clone()),
        source.map(|source| i64::from(source.revision)),
        source.and_then(|source| source.project.clone()),
        header.tags.clone(),
        fields.search_text,
        has_grown.then(|| row.sha256.clone()),
        has_grown.then_some(row.place),
    ))
}
