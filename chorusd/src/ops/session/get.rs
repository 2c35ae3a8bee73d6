//! `session.get`.

use chorus_proto::ErrorKind;
use chorus_proto::methods::session::{GetParams, GetResult};

use crate::agent::context::{Pick, Room, page};
use crate::failure::{Failure, Result};
use crate::message::Stored;
use crate::ops::{Ops, blocking, select, view};
use crate::session::SessionFile;
use crate::store::catalog::SessionRow;
use crate::store::session_files;

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
    let (file, changed) = read(ops, &row).await?;
    let warnings = if changed { vec![was_changed(&row)] } else { Vec::new() };
    let pick = Pick::From { offset: params.offset.unwrap_or(0), limit: params.limit.unwrap_or(u64::MAX) };
    let (messages, next) = page(&file.messages, pick, Room::of(ops.config.max_frame));
    Ok(GetResult { session: view::session(ops, row).await?, messages, next, summary_pending, warnings })
}

/// Says that the messages of a session are not those that were saved.
pub fn was_changed(row: &SessionRow) -> String {
    format!("the file of {} was changed since it was saved", row.header.session_id)
}

/// Reads the file of a session; true where its messages were changed since it was saved.
///
/// # Errors
/// `session_not_found` where the file is gone, `corrupt_session` where it is none.
pub async fn read(ops: &Ops, row: &SessionRow) -> Result<(SessionFile, bool)> {
    let path = view::path(ops, &row.header).await?;
    let name = row.header.session_id.clone();
    let found = blocking(move || session_files::read(&path)).await?;
    let file = found.file.map_err(|e| {
        Failure::new(ErrorKind::CorruptSession, format!("the file of {name} {e}"))
            .hint("the file was left as it is; mend it or put a copy in its place")
    })?;
    let changed = file.sha256 != row.sha256;
    Ok((file, changed))
}
