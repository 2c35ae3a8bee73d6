//! `context.compact`.

use std::time::Duration;

use chorus_proto::methods::chain::{CompactParams, CompactResult};
use chorus_proto::{Receipt, Session};

use super::parent::{Acknowledged, Parent};
use super::wrong_reply;
use crate::agent::compaction::tokens;
use crate::agent::directory::Entry;
use crate::agent::event::{Compacts, Reply, Resume, Verb};
use crate::failure::{Failure, Result};
use crate::ops::{Ops, select, view};

/// How long the model's summary is waited for; then the one in the conversation's own words goes on.
const SUMMARY: Duration = Duration::from_secs(30);

/// How often it is begun anew because the conversation has gone on meanwhile. Only the first time a model is asked.
const TRIES: usize = 5;

/// Saves the conversation and goes on in a fresh context, the next link of its chain; with `undo` takes the last compaction in
/// place back.
///
/// # Errors
/// `nothing_to_save` for an empty context, `denied` where there is nothing to take back, `busy`, `disk_full`, `storage_failed`.
pub async fn compact(ops: &Ops, params: CompactParams) -> Result<CompactResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    if params.undo {
        return undo(ops, &agent).await;
    }
    for attempt in 0..TRIES {
        let Reply::Saved { session, pending, .. } = ops.registry.ask(agent.facts.id, Verb::SaveToCompact).await?.reply
        else {
            return Err(wrong_reply());
        };
        let first = attempt == 0;
        if pending && first {
            ops.registry.summaries.settled(session.header.id, SUMMARY).await;
        }
        if let Some(result) = go_on(ops, &agent, *session, first).await? {
            return Ok(result);
        }
    }
    Err(Failure::busy())
}

/// Goes on from a save of the live context; `None` where that has gone on by itself.
async fn go_on(ops: &Ops, agent: &Entry, saved: Session, ask: bool) -> Result<Option<CompactResult>> {
    let id = saved.header.id;
    let gone = || Failure::internal("a session went away while it was compacted");
    let row = ops.store.catalog.session(id).await?.ok_or_else(gone)?;
    let parent = Parent::read(ops, &agent.facts, &row).await?;
    let opening = parent.acknowledge(ops, &agent.facts, ask).await?;
    let compacts = Compacts { messages: row.header.message_count, receipt: receipt(&parent, &opening) };
    let verb = Verb::Resume(Box::new(Resume {
        session: id,
        session_id: row.header.session_id.clone(),
        working_set: parent.working_set(),
        acknowledgement: opening.message,
        cost: opening.cost,
        compacts: Some(compacts),
    }));
    let (receipt, messages) = match ops.registry.ask(agent.facts.id, verb).await?.reply {
        Reply::Compacted { receipt, messages } => (*receipt, messages),
        Reply::GoneOn => return Ok(None),
        _ => return Err(wrong_reply()),
    };
    Ok(Some(CompactResult {
        session: Some(view::session(ops, row).await?),
        messages,
        saved_first: None,
        acknowledgement: Some(opening.text),
        generated: opening.generated,
        receipt,
        warnings: parent.warnings,
    }))
}

fn receipt(parent: &Parent, opening: &Acknowledged) -> Receipt {
    let header = &parent.header;
    let (from, to) = parent.ends.clone();
    Receipt {
        tokens_before: header.token_estimate + tokens(&[], &header.working_set),
        tokens_after: tokens(std::slice::from_ref(&opening.message), &parent.working_set()),
        left: header.message_count,
        kept: 0,
        from,
        to,
        // The live context knows them best.
        pins: Vec::new(),
    }
}

async fn undo(ops: &Ops, agent: &Entry) -> Result<CompactResult> {
    match ops.registry.ask(agent.facts.id, Verb::Uncompact).await?.reply {
        Reply::Uncompacted { receipt, messages } => Ok(CompactResult {
            session: None,
            messages,
            saved_first: None,
            acknowledgement: None,
            generated: false,
            receipt: *receipt,
            warnings: Vec::new(),
        }),
        _ => Err(wrong_reply()),
    }
}
