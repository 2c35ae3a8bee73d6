//! `session.export.*`.

use std::io;

use chorus_proto::ErrorKind;
use chorus_proto::methods::export::{ReadParams, ReadResult, SelectParams, SelectResult};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::checkpoints::Checkpoint;
use super::get::{corrupt, open};
use crate::failure::{Failure, Result};
use crate::message::Stored;
use crate::ops::context::history::since;
use crate::ops::{Ops, blocking, select as of_name, view};
use crate::session::export::{Parent, Piece, Text};
use crate::session::{FormatError, Index};
use crate::store::catalog::Listing;
use crate::store::session_index::Paged;

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
    let paged = open(ops, &row).await?;
    let parent = parent(ops, &paged.index).await?;
    let fingerprint = fingerprint(&paged.index, parent.as_ref());
    if params.fingerprint.is_some_and(|before| before != fingerprint) {
        let failure = Failure::new(ErrorKind::Conflict, "the session changed while it was exported");
        return Err(failure.hint("try again, from the beginning"));
    }
    let offset = params.offset.unwrap_or(0);
    let room = (ops.config.max_frame / 2).min(PIECE);
    let of = (fingerprint.clone(), params.form);
    let begun = ops.checkpoints.before(&of, offset);
    let name = row.header.session_id.clone();
    let (data, next, reached) = blocking(move || {
        let text = Text { header: &paged.index.header, parent: parent.as_ref(), form: params.form };
        let mut piece = Piece::new(offset - begun.offset, room);
        let reached = write(&mut piece, &text, &paged, &name, begun)?;
        let (data, next) = piece
            .finish(offset)
            .ok_or_else(|| Failure::invalid("`offset` is not one that `next` gave").hint("begin without one"))?;
        Ok((data, next, reached))
    })
    .await?;
    ops.checkpoints.keep(of, reached);
    Ok(ReadResult { session: view::session(ops, row).await?, data, next, fingerprint: Some(fingerprint) })
}

/// Writes a text from a checkpoint on until the piece is full or the text at its end; the last checkpoint before that.
fn write(piece: &mut Piece, text: &Text<'_>, paged: &Paged, name: &str, begun: Checkpoint) -> Result<Checkpoint> {
    let mut progress = begun.progress;
    let mut messages = paged.messages_from(progress.messages);
    // The piece refuses what no longer fits, and knows that it did; memory refuses nothing.
    if begun.offset == 0 {
        let _ = text.begin(piece);
    }
    let mut reached = begun;
    loop {
        let Some(passed) = piece.passed() else { return Ok(reached) };
        reached = Checkpoint { offset: begun.offset + passed, progress };
        let Some(message) = messages.read()?.map_err(|e| corrupt(name, &e))? else { break };
        let written = text.message(piece, &mut progress, &message);
        if let Err(error) = written
            && piece.passed().is_some()
        {
            let number = reached.progress.messages + 1;
            return Err(corrupt(name, &FormatError::Message { number, reason: error.to_string() }));
        }
    }
    let mut failed = None;
    let _ = text.end(piece, progress, |count| {
        newest(paged, name, count).map_err(|failure| {
            failed = Some(failure);
            io::ErrorKind::Other.into()
        })
    });
    failed.map_or(Ok(reached), Err)
}

/// The last messages, so many of them.
fn newest(paged: &Paged, name: &str, count: u64) -> Result<Vec<Stored>> {
    let mut messages = paged.messages_from(paged.index.header.message_count.saturating_sub(count));
    let mut newest = Vec::new();
    while let Some(message) = messages.read()?.map_err(|e| corrupt(name, &e))? {
        newest.push(message);
    }
    Ok(newest)
}

/// Differs where the text of a session does, in any form.
fn fingerprint(file: &Index, parent: Option<&Parent>) -> String {
    let mut hash = Sha256::new();
    hash.update(&file.sha256);
    // What the catalogue knows better than the file is in the header.
    hash.update(serde_json::to_vec(&file.header).unwrap_or_default());
    hash.update(format!("{parent:?}"));
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The session that `file` goes on from, where it is still known.
async fn parent(ops: &Ops, file: &Index) -> Result<Option<Parent>> {
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
