//! The operation `context.compact`.

use std::time::Duration;

use chorus_agent_core::compaction::tokens_with_working_set;
use chorus_agent_core::event::{CompactedContext, CompactionTarget, Restore, Resume, UndoContinuation};
use chorus_base::error::{Error, Result};
use chorus_proto::methods::continuation::{CompactParams, CompactResult};
use chorus_proto::{ErrorKind, ItemSource, Receipt, Session};
use chorus_session::stored_message::ContextNo;
use futures_util::future::BoxFuture;

use super::ContinuationStarter;
use super::carried_set::CarriedSet;
use super::continuation_source::{CONTEXT_UNCHANGED_HINT, CarryOver, ContinuationSource, ModelNotes, OpeningMessage};
use crate::agent::command::{self, CompactionOutcome, UncompactOutcome};
use crate::agent::summaries::Summaries;
use crate::ops::agent::AgentResolver;
use crate::ops::conversations::ConversationTarget;
use crate::ops::session::get::changed_warning;

/// The time to wait for the model's summary; after that the extractive one is used.
const SUMMARY_TIMEOUT: Duration = Duration::from_secs(30);

/// The limit on attempts, each of which starts over because messages were added meanwhile. Only the first attempt calls
/// a model; later ones reuse its notes.
const MAX_ATTEMPTS: usize = 5;

/// Saves the conversation and continues in a new context, which refers to the saved session as its parent. With `undo`,
/// reverts the newest compaction, by hand or in place.
///
/// # Errors
/// `nothing_to_save` for a context without messages, `denied` if there is nothing to undo, `busy` if messages keep
/// being added, `interrupted` if another conversation replaced it, `session_not_found` or `corrupt_session` if the
/// saved session cannot be read back, `disk_full`, `storage_failed`.
pub async fn compact(
    agents: &AgentResolver,
    starter: &ContinuationStarter,
    summaries: &Summaries,
    params: CompactParams,
) -> Result<CompactResult> {
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    if params.undo {
        return undo_compaction(starter, &target).await;
    }
    let (mut last, mut notes) = (String::new(), None);
    for attempt in 0..MAX_ATTEMPTS {
        let saved = starter.registry.ask(target.key, command::save_for_compaction()).await?;
        let first = attempt == 0;
        if saved.summary_pending && first {
            summaries.wait_until_done(saved.session.header.id, SUMMARY_TIMEOUT).await;
        }
        last = saved.session.header.session_id.clone();
        let saved = (saved.context, saved.window_start, *saved.session);
        if let Some(result) = continue_from_save(starter, &target, saved, &mut notes).await? {
            return Ok(result);
        }
    }
    let name = &target.agent.settings.name;
    let reason = format!("the conversation of {name} kept changing; it was last saved as {last}");
    Err(Error::new(ErrorKind::Busy, reason).hint("nothing was removed; compact it when no messages arrive"))
}

/// Continues from a saved live context; returns `None` if messages were added to that meanwhile.
fn continue_from_save<'a>(
    starter: &'a ContinuationStarter,
    target: &'a ConversationTarget,
    (context, view, saved): (ContextNo, usize, Session),
    written: &'a mut Option<ModelNotes>,
) -> BoxFuture<'a, Result<Option<CompactResult>>> {
    Box::pin(async move {
        let (id, name) = (saved.header.id, &target.agent.settings.name);
        let deleted_error = || {
            Error::new(ErrorKind::SessionNotFound, "the session to continue from was deleted")
                .hint(CONTEXT_UNCHANGED_HINT)
        };
        let row = starter.store.catalog.sessions.get(id).await?.ok_or_else(deleted_error)?;
        // The session is the only place for what the live context would drop, so it must be complete.
        let mut parent = ContinuationSource::read_complete(starter, &target.agent.settings, &row).await?;
        let ask = written.is_none();
        let notes = match written.take() {
            Some(written) => written,
            None => parent.extract_notes(starter, target, view).await,
        };
        let carry_over = parent.apply_notes(written.insert(notes));
        let opening = parent.opening_message(starter, target, ask).await?;
        if !opening.generated || carry_over.source == Some(ItemSource::Model) {
            ContinuationSource::ensure_complete(starter, &target.agent.settings, &row).await?;
        }
        let carried = parent.working_set();
        parent.warnings.extend(carried.warning(&row.header.session_id));
        let compacts = CompactionTarget {
            context,
            messages: row.header.message_count,
            receipt: build_receipt(&parent, &opening, carry_over, &carried),
        };
        let compact = command::compact(Resume {
            session: id,
            session_id: row.header.session_id.clone(),
            working_set: carried.working_set,
            acknowledgement: opening.message,
            restoration: opening.cost,
            compaction: Some(compacts),
        });
        let CompactedContext { receipt, messages } = match starter.registry.ask(target.key, compact).await? {
            CompactionOutcome::Compacted(compacted) => compacted,
            CompactionOutcome::ContextMovedOn { replaced: false } => return Ok(None),
            CompactionOutcome::ContextMovedOn { replaced: true } => {
                let session = &row.header.session_id;
                return Err(Error::new(
                    ErrorKind::Interrupted,
                    format!("the conversation of {name} was replaced during compaction; it was saved as {session}"),
                )
                .hint(format!("continue it: chorusctl --agent {name} resume {session}")));
            }
        };
        Ok(Some(CompactResult {
            session: Some(starter.sessions.describe(row).await?),
            messages,
            saved_first: None,
            acknowledgement: Some(opening.text),
            generated: opening.generated,
            receipt: *receipt,
            warnings: parent.warnings,
        }))
    })
}

fn build_receipt(
    parent: &ContinuationSource,
    opening: &OpeningMessage,
    carry_over: CarryOver,
    carried: &CarriedSet,
) -> Receipt {
    let CarryOver { source, fallback, offered_facts: offered, done_tasks: done } = carry_over;
    let header = &parent.header;
    let (from, to) = parent.end_ids.clone();
    Receipt {
        tokens_before: header.token_estimate + tokens_with_working_set(&[], &header.working_set),
        tokens_after: tokens_with_working_set(std::slice::from_ref(&opening.message), &carried.working_set),
        left: header.message_count,
        kept: 0,
        from,
        to,
        // The live context adds them itself.
        pins: Vec::new(),
        source: source.or(Some(ItemSource::Rule)),
        fallback,
        offered,
        done,
        dropped: carried.dropped,
        condensed: carried.condensed.count(),
    }
}

/// Undoes the newest compaction: one in place by showing the messages to the model again, one by hand by restoring the
/// saved session, with what was said since behind its messages.
async fn undo_compaction(starter: &ContinuationStarter, target: &ConversationTarget) -> Result<CompactResult> {
    let begun = match starter.registry.ask(target.key, command::uncompact()).await? {
        UncompactOutcome::Uncompacted(CompactedContext { receipt, messages }) => {
            return Ok(undo_result(None, messages, *receipt));
        }
        UncompactOutcome::ByHand(begun) => begun,
    };
    let _no_deletes = starter.sessions_lock.read().await;
    let deleted_error = || {
        Error::new(ErrorKind::SessionNotFound, "the session with the compacted messages was deleted")
            .hint("if it is in the trash (chorusctl trash list), restore it and undo again")
    };
    let row = starter.store.catalog.sessions.get(begun.session).await?.ok_or_else(deleted_error)?;
    let (file, changed) = starter.sessions.read_file(&row).await?;
    let restore = Box::new(Restore {
        session: row.header.id,
        session_id: row.header.session_id.clone(),
        messages: file.messages,
        appended: Vec::new(),
        working_set: file.header.working_set,
        restoration: row.header.restoration_tokens,
        discard: true,
    });
    let undo = command::undo_continuation(UndoContinuation { context: begun.context, restore });
    let Some(messages) = starter.registry.ask(target.key, undo).await? else {
        let name = &target.agent.settings.name;
        return Err(Error::new(
            ErrorKind::Interrupted,
            format!("the conversation of {name} was replaced during the undo"),
        )
        .hint("see what is live now: chorusctl context show"));
    };
    let warnings = changed.then(|| changed_warning(&row)).into_iter().collect();
    let session = starter.sessions.describe(row).await?;
    Ok(CompactResult { warnings, ..undo_result(Some(session), messages, *begun.receipt) })
}

fn undo_result(session: Option<Session>, messages: u64, receipt: Receipt) -> CompactResult {
    CompactResult {
        session,
        messages,
        saved_first: None,
        acknowledgement: None,
        generated: false,
        receipt,
        warnings: Vec::new(),
    }
}
