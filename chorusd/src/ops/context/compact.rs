//! `context.compact`.

use std::time::Duration;

use chorus_proto::methods::chain::{CompactParams, CompactResult};
use chorus_proto::{ErrorKind, ItemSource, Receipt, Session};

use super::parent::{Acknowledged, Kept, Parent, STAYS, Written};
use super::wrong_reply;
use crate::agent::compaction::tokens;
use crate::agent::directory::Entry;
use crate::agent::event::{Compacts, Reply, Resume, Verb};
use crate::failure::{Failure, Result};
use crate::message::ContextNo;
use crate::ops::{Ops, select, view};

/// How long the model's summary is waited for; then the one in the conversation's own words goes on.
const SUMMARY: Duration = Duration::from_secs(30);

/// How often it is begun anew because the conversation has gone on meanwhile. Only the first time a model is asked, and what it wrote
/// down then is kept.
const TRIES: usize = 5;

/// Saves the conversation and goes on in a fresh context, the next link of its chain; with `undo` takes the last compaction in
/// place back.
///
/// # Errors
/// `nothing_to_save` for a context in which nothing was said, `denied` where there is nothing to take back, `busy` where it goes on
/// all the time, `interrupted` where another conversation took its place, `session_not_found` or `corrupt_session` where the save
/// cannot be read back, `disk_full`, `storage_failed`.
pub async fn compact(ops: &Ops, params: CompactParams) -> Result<CompactResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    if params.undo {
        return undo(ops, &agent).await;
    }
    let (mut last, mut written) = (String::new(), None);
    for attempt in 0..TRIES {
        let reply = ops.registry.ask(agent.facts.id, Verb::SaveToCompact).await?.reply;
        let Reply::SavedToCompact { context, view, session, pending } = reply else { return Err(wrong_reply()) };
        let first = attempt == 0;
        if pending && first {
            ops.registry.summaries.settled(session.header.id, SUMMARY).await;
        }
        last = session.header.session_id.clone();
        if let Some(result) = go_on(ops, &agent, (context, view, *session), &mut written).await? {
            return Ok(result);
        }
    }
    let name = &agent.facts.name;
    let goes_on = format!("the conversation of {name} goes on all the time; the last save of it is {last}");
    Err(Failure::new(ErrorKind::Busy, goes_on).hint("compact it when nothing comes in; nothing was taken out of it"))
}

/// Goes on from a save of the live context; `None` where that has gone on by itself.
async fn go_on(
    ops: &Ops,
    agent: &Entry,
    (context, view, saved): (ContextNo, usize, Session),
    written: &mut Option<Written>,
) -> Result<Option<CompactResult>> {
    let (id, name) = (saved.header.id, &agent.facts.name);
    let gone =
        || Failure::new(ErrorKind::SessionNotFound, "the session was deleted that was to be gone on from").hint(STAYS);
    let row = ops.store.catalog.session(id).await?.ok_or_else(gone)?;
    // Nothing but the session has what the live context would end with.
    let mut parent = Parent::whole(ops, &agent.facts, &row).await?;
    let ask = written.is_none();
    let notes = match written.take() {
        Some(written) => written,
        None => parent.write_down(ops, &agent.facts, view).await,
    };
    let kept = parent.take(written.insert(notes));
    let opening = parent.acknowledge(ops, &agent.facts, ask).await?;
    if !opening.generated || kept.source == Some(ItemSource::Model) {
        Parent::still_whole(ops, &agent.facts, &row).await?;
    }
    let compacts = Compacts { context, messages: row.header.message_count, receipt: receipt(&parent, &opening, kept) };
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
        Reply::GoneOn { replaced: false } => return Ok(None),
        Reply::GoneOn { replaced: true } => {
            let session = &row.header.session_id;
            return Err(Failure::new(
                ErrorKind::Interrupted,
                format!("the conversation of {name} was replaced while it was compacted; it is saved as {session}"),
            )
            .hint(format!("`chorusctl --agent {name} context resume {session}` goes on from it")));
        }
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

fn receipt(parent: &Parent, opening: &Acknowledged, kept: Kept) -> Receipt {
    let Kept { source, fallback, offered, done } = kept;
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
        source: source.or(Some(ItemSource::Rule)),
        fallback,
        offered,
        done,
        dropped: 0,
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
