//! `session.export.*`.

use chorus_proto::ErrorKind;
use chorus_proto::methods::export::{ReadParams, ReadResult, SelectParams, SelectResult};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::get::read as read_file;
use crate::failure::{Failure, Result};
use crate::ops::context::history::since;
use crate::ops::{Ops, blocking, select as of_name, view};
use crate::session::SessionFile;
use crate::session::export::{self, Parent, Piece};
use crate::store::catalog::Listing;

/// Sessions in one answer: far below what a frame holds.
const PAGE: u64 = 1000;

/// Longest piece of text in one answer.
const PIECE: usize = 4 << 20;

/// The sessions that are meant, a page of them.
///
/// # Errors
/// `invalid_params`, `agent_not_found`, `session_not_found`, `ambiguous`, `denied`.
pub async fn select(ops: &Ops, params: SelectParams) -> Result<SelectResult> {
    let offset = params.offset.unwrap_or(0);
    if params.session.is_empty() {
        return of_agents(ops, params, offset).await;
    }
    if params.all_agents || params.since.is_some() {
        return Err(Failure::invalid("`session` goes with neither `all_agents` nor `since`"));
    }
    let agent = of_name::agent(ops, params.agent.as_deref()).await?;
    let mut rows = Vec::new();
    let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
    for session in params.session.iter().skip(skipped).take(PAGE as usize) {
        rows.push(of_name::session(ops, &agent, params.agent.is_some(), session).await?);
    }
    let end = offset.saturating_add(rows.len() as u64);
    let next = (end < params.session.len() as u64 && !rows.is_empty()).then_some(end);
    Ok(SelectResult { sessions: view::sessions(ops, rows).await?, next })
}

async fn of_agents(ops: &Ops, params: SelectParams, offset: u64) -> Result<SelectResult> {
    let agent = match params.all_agents {
        true => None,
        false => Some(of_name::agent(ops, params.agent.as_deref()).await?.facts.id),
    };
    let since = params.since.as_deref().map(|text| since(text, ops.clock.now())).transpose()?;
    let listing = Listing { agent, since, tag: None, offset, limit: PAGE };
    let (rows, total) = ops.store.catalog.sessions(listing).await?;
    let end = offset.saturating_add(rows.len() as u64);
    let next = (end < total && !rows.is_empty()).then_some(end);
    Ok(SelectResult { sessions: view::sessions(ops, rows).await?, next })
}

/// A piece of a session as text.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `denied`, `corrupt_session`, `invalid_params`, `conflict` where it changed since the piece
/// that the fingerprint is of.
pub async fn read(ops: &Ops, params: ReadParams) -> Result<ReadResult> {
    let row = match Uuid::try_parse(&params.session) {
        // What `select` gave is meant, whosever it is: reading takes nothing across.
        Ok(id) if params.session.len() == 36 => ops.store.catalog.session(id).await?,
        _ => None,
    };
    let row = match row {
        Some(row) => row,
        None => {
            let agent = of_name::agent(ops, params.agent.as_deref()).await?;
            of_name::session(ops, &agent, params.agent.is_some(), &params.session).await?
        }
    };
    let (file, _) = read_file(ops, &row).await?;
    let parent = parent(ops, &file).await?;
    let fingerprint = fingerprint(&file, parent.as_ref());
    if params.fingerprint.is_some_and(|before| before != fingerprint) {
        let failure = Failure::new(ErrorKind::Conflict, "the session changed while it was exported");
        return Err(failure.hint("try again, from the beginning"));
    }
    let offset = params.offset.unwrap_or(0);
    let room = (ops.config.max_frame / 2).min(PIECE);
    let (data, next) = blocking(move || {
        let mut piece = Piece::new(offset, room);
        // The piece refuses what no longer fits, and knows that it did; memory refuses nothing.
        let _ = export::write(&mut piece, &file, parent.as_ref(), params.form);
        piece
            .finish(offset)
            .ok_or_else(|| Failure::invalid("`offset` is not one that `next` gave").hint("begin without one"))
    })
    .await?;
    Ok(ReadResult { session: view::session(ops, row).await?, data, next, fingerprint: Some(fingerprint) })
}

/// Differs where the text of a session does, in any form.
fn fingerprint(file: &SessionFile, parent: Option<&Parent>) -> String {
    let mut hash = Sha256::new();
    hash.update(&file.sha256);
    // What the catalogue knows better than the file is in the header.
    hash.update(serde_json::to_vec(&file.header).unwrap_or_default());
    hash.update(format!("{parent:?}"));
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The session that `file` goes on from, where it is still known.
async fn parent(ops: &Ops, file: &SessionFile) -> Result<Option<Parent>> {
    let Some(id) = file.header.parent_id else { return Ok(None) };
    let Some(row) = ops.store.catalog.session(id).await? else { return Ok(None) };
    let path = view::path(ops, &row.header).await?;
    Ok(Some(Parent {
        queries: row.header.query_count,
        tokens: row.header.token_estimate,
        file: path.to_string_lossy().into_owned(),
        session_id: row.header.session_id,
    }))
}
