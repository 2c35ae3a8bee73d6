//! `session.get`.

use chorus_proto::ErrorKind;
use chorus_proto::methods::session::{GetParams, GetResult};

use crate::agent::context::{Page, Room};
use crate::failure::{Failure, Result};
use crate::message::Stored;
use crate::ops::{Ops, blocking, select, view};
use crate::session::{FormatError, SessionFile};
use crate::store::catalog::SessionRow;
use crate::store::session_files;
use crate::store::session_index::Paged;

/// A saved session with a page of its messages.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `denied`, `corrupt_session`.
pub async fn get(ops: &Ops, params: GetParams) -> Result<GetResult<Stored>> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let row = select::session(ops, &agent, params.agent.is_some() && !params.own, &params.session).await?;
    let summary_pending = ops.registry.summaries.is_under_way(row.header.id);
    // Read after that: where no summary is on its way, the row has the last word.
    let row = ops.store.catalog.session(row.header.id).await?.unwrap_or(row);
    let paged = open(ops, &row).await?;
    let warnings = if paged.index.sha256 == row.sha256 { Vec::new() } else { vec![was_changed(&row)] };
    let (offset, limit) = (params.offset.unwrap_or(0), params.limit.unwrap_or(u64::MAX));
    let (name, room) = (row.header.session_id.clone(), Room::of(ops.config.max_frame));
    let (messages, next) = blocking(move || page(&paged, &name, (offset, limit), room)).await?;
    Ok(GetResult { session: view::session(ops, row).await?, messages, next, summary_pending, warnings })
}

/// The messages of a page, as [`crate::agent::context::page`] has them, and the offset of the next one.
fn page(paged: &Paged, name: &str, (offset, limit): (u64, u64), room: Room) -> Result<(Vec<Stored>, Option<u64>)> {
    let count = paged.index.header.message_count;
    let (start, end) = (offset.min(count), offset.saturating_add(limit).min(count));
    let mut page = Page::new(room);
    let mut messages = paged.messages_from(start);
    let mut next = start;
    while next < end
        && let Some(message) = messages.read()?.map_err(|e| corrupt(name, &e))?
        && page.take(&message)
    {
        next += 1;
    }
    Ok((page.messages, (next < count).then_some(next)))
}

/// Says that the messages of a session are not those that were saved.
pub fn was_changed(row: &SessionRow) -> String {
    format!("the file of {} was changed since it was saved", row.header.session_id)
}

/// Opens the file of a session, to read messages from any of them on.
///
/// # Errors
/// As [`read`].
pub async fn open(ops: &Ops, row: &SessionRow) -> Result<Paged> {
    let path = view::path(ops, &row.header).await?;
    let store = ops.store.clone();
    let opened = blocking(move || store.files.indexes.open(&path)).await?;
    opened.map_err(|e| corrupt(&row.header.session_id, &e))
}

/// Reads the file of a session; true where its messages were changed since it was saved.
///
/// # Errors
/// `session_not_found` where the file is gone, `corrupt_session` where it is none.
pub async fn read(ops: &Ops, row: &SessionRow) -> Result<(SessionFile, bool)> {
    let path = view::path(ops, &row.header).await?;
    let found = blocking(move || session_files::read(&path)).await?;
    let file = found.file.map_err(|e| corrupt(&row.header.session_id, &e))?;
    let changed = file.sha256 != row.sha256;
    Ok((file, changed))
}

/// The failure that a file of the session `name` is none.
#[must_use]
pub fn corrupt(name: &str, error: &FormatError) -> Failure {
    Failure::new(ErrorKind::CorruptSession, format!("the file of {name} {error}"))
        .hint("the file was left as it is; mend it or put a copy in its place")
}
