//! `context.restore`.

use chorus_proto::ErrorKind;
use chorus_proto::methods::context::{RestoreParams, RestoreResult};

use super::wrong_reply;
use crate::agent::context::whole_calls;
use crate::agent::event::{Reply, Restore, Verb};
use crate::failure::{Failure, Result};
use crate::ops::session::get::read;
use crate::ops::{Ops, select, view};

/// Puts a session's full messages back as the live context. Unsaved messages of the live context are saved first
/// unless `discard` is said.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `denied`, `corrupt_session`, `disk_full`, `storage_failed`.
pub async fn restore(ops: &Ops, params: RestoreParams) -> Result<RestoreResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let _no_deletes = ops.sessions_lock.read().await;
    let row = select::session(ops, &agent, params.agent.is_some() && !params.own, &params.session).await?;
    let (file, changed) = read(ops, &row).await?;
    let mut warnings = Vec::new();
    if changed {
        warnings.push(format!("the file of {} was changed since it was saved", row.header.session_id));
    }
    let mut messages = file.messages;
    if let Some(at) = params.at {
        let wanted = usize::try_from(at).unwrap_or(usize::MAX);
        if wanted > messages.len() {
            let name = &row.header.session_id;
            return Err(Failure::invalid(format!("{name} has {} messages, not {at}", messages.len()))
                .hint("`chorusctl session show` shows them"));
        }
        let keep = whole_calls(&messages, wanted);
        if keep < wanted {
            warnings
                .push(format!("cut back to {keep} messages: the next one calls tools whose results would be missing"));
        }
        messages.truncate(keep);
    }
    if messages.is_empty() {
        return Err(Failure::new(ErrorKind::NothingToSave, "there would be no messages in the context")
            .hint("`chorusctl context clear` empties a context"));
    }
    let id = row.header.id;
    let verb = Verb::Restore(Box::new(Restore {
        session: id,
        session_id: row.header.session_id.clone(),
        messages,
        working_set: file.header.working_set,
        restoration: row.header.restoration_tokens,
        discard: params.discard,
    }));
    let Reply::Restored { messages, saved_first } = ops.registry.ask(agent.facts.id, verb).await?.reply else {
        return Err(wrong_reply());
    };
    // When it was last used only matters to retention: nobody waits for it.
    drop(ops.store.catalog.touch_session(id, ops.clock.now()));
    Ok(RestoreResult {
        session: view::session(ops, row).await?,
        messages,
        saved_first: saved_first.map(|session| *session),
        warnings,
    })
}
